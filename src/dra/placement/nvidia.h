// Devices of NVIDIA's driver, and of nos's own, as placements of the catalogue.
//
// The drivers publish a device for each GPU ("gpu-0") and, with dynamic MIG, one for each profile
// and start of an instance ("gpu-0-mig-1g10gb-19-6": profile id 19, start slot 6). Attributes: type
// (gpu or mig), uuid or parentUUID, productName, profile. No attribute has the start, so the name
// is read. Devices that claims share (dra/gpu_slices.h) are the GPU or the instance that is shared.
// Any account that may write ResourceSlices chooses all of these texts.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "dra/objects.h"
#include "gpu/catalogue.h"
#include "gpu/fragmentation.h"

namespace nos::dra {

// A GPU, or a MIG instance on it.
struct GpuDevice {
  Name gpu;  // its UUID
  const gpu::Model* model = nullptr;
  enum class Kind {
    kWhole,
    kInstance,
    kUnknown  // an instance that the catalogue does not know: what it takes is not known
  } kind = Kind::kUnknown;
  gpu::Placement placement;  // kInstance
};

// How the GPUs of a model are filled.
struct GpuRule {
  const gpu::Model& model;
  gpu::Fragmentation fragmentation;
};

// Remembers what product names mean, and the rule of each model. The catalogue must outlive it. Not
// thread-safe.
class GpuReader {
 public:
  explicit GpuReader(const gpu::Catalogue& catalogue) : catalogue_(catalogue) {}

  // nullopt: not a device of such a driver, or its model is unknown or cannot be partitioned.
  std::optional<GpuDevice> Read(const ResourceSlice& slice, const Device& device);
  const GpuRule& RuleOf(const gpu::Model& model);

 private:
  const gpu::Model* ModelOf(const Name& product);

  const gpu::Catalogue& catalogue_;
  std::unordered_map<Name, const gpu::Model*> models_;  // by product
  std::unordered_map<const gpu::Model*, std::unique_ptr<const GpuRule>> rules_;
};

}  // namespace nos::dra
