// What this machine's driver says of its GPUs, read-only, for people and for support: devices,
// profiles with ids, sizes and possible placements, instances, and where the driver and the
// catalogue disagree. Works with MIG off too, as far as the driver tells.
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
  // The catalogue's row, null when it has none; what is different in it, driver first.
  const gpu::Profile* row = nullptr;
  std::vector<std::string> differences;
};

struct GpuDescription {
  GpuInfo info;
  const gpu::Model* model = nullptr;  // null: not in the catalogue
  std::vector<ProfileDescription> profiles;
  Status profiles_status;                   // why there are none
  std::vector<const gpu::Profile*> untold;  // rows of the catalogue that the driver does not have
  std::vector<GpuInstance> instances;
  Status instances_status;
};

struct NodeDescription {
  std::string driver, library;
  std::vector<std::string> limits;  // of an old driver
  std::vector<GpuDescription> gpus;
};

// Changes nothing. `catalogue` must outlive what is returned. Error: kUnavailable when there is no
// driver; one bad GPU is only described as such.
Result<NodeDescription> Describe(NvmlBackend& backend, const gpu::Catalogue& catalogue);

// How the driver's profile differs from the row: "memory 4864 MiB (catalogue: 4800)". Pure.
std::vector<std::string> Differences(const DriverProfile& profile, const gpu::Profile& row);

// Copy, decode, encode, JPEG and optical-flow engines: "1/1/0/1/0".
std::string EnginesText(const gpu::Engines& engines);

// At most 100 columns wide but for UUIDs and paths on lines of their own.
std::string DescriptionText(const NodeDescription& node);
Json DescriptionJson(const NodeDescription& node);

}  // namespace nos::device
