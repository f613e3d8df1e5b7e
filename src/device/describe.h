// Describes the GPUs of this machine as its driver reports them, read-only, for operators and
// support: devices, profiles with ids, sizes and possible placements, instances, and differences
// between the driver and the catalogue. Works with MIG off too, as far as the driver reports
// profiles then.
//
//   NOS_ASSIGN(const NodeDescription node, Describe(backend, catalogue));
//   std::cout << DescriptionText(node);
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "codec/json.h"
#include "device/nvml_backend.h"
#include "gpu/catalogue.h"

namespace nos::device {

struct ProfileDescription {
  DriverProfile profile;
  // The catalogue's row (null: none), and the differences from it, the driver's value first.
  const gpu::Profile* row = nullptr;
  std::vector<std::string> differences;
};

struct GpuDescription {
  GpuInfo info;
  const gpu::Model* model = nullptr;  // null: not in the catalogue
  std::vector<ProfileDescription> profiles;
  Status profiles_status;                           // the error if `profiles` is empty
  std::vector<const gpu::Profile*> catalogue_only;  // rows of the catalogue that the driver lacks
  std::vector<GpuInstance> instances;
  Status instances_status;
};

struct NodeDescription {
  std::string driver, library;
  std::vector<std::string> limits;  // missing features of an old driver
  std::vector<GpuDescription> gpus;
};

// Changes nothing. `catalogue` must outlive the result. Error: kUnavailable without a driver; a
// faulty GPU is described as such.
Result<NodeDescription> Describe(NvmlBackend& backend, const gpu::Catalogue& catalogue);

// The differences between the driver's profile and the row: "memory 4864 MiB (catalogue: 4800)".
// Pure.
std::vector<std::string> Differences(const DriverProfile& profile, const gpu::Profile& row);

// Copy, decode, encode, JPEG and optical-flow engines: "1/1/0/1/0".
std::string EnginesText(const gpu::Engines& engines);

// At most 100 columns wide, except for UUIDs and paths on their own lines.
std::string DescriptionText(const NodeDescription& node);
Json DescriptionJson(const NodeDescription& node);

}  // namespace nos::device
