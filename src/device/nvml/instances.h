// Reads the GPU instances of one GPU with their compute instances from the driver.
//
// GPU instances are listed by profile, not through the list of MIG devices: that list omits an
// instance without a compute instance.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "device/backend.h"
#include "device/nvml/library.h"
#include "device/nvml/profiles.h"

namespace nos::device {

struct ComputeSlice {
  nvml::ComputeInstanceRef ref = nullptr;
  unsigned id = 0;
  int slices = 0;
};

// The compute instances of a GPU instance, by id.
Result<std::vector<ComputeSlice>> ReadComputeSlices(const nvml::Functions& call,
                                                    nvml::GpuInstanceRef instance);

// All GPU instances, by start. An instance that does not hold exactly one full-size compute
// instance (another tool partitioned it further) is reported under the name of its first compute
// instance ("1c.3g.20gb"). No catalogue contains that name, so the instance is left alone.
// Errors: as ToStatus. All or nothing: an instance that cannot be read must not pass for absent.
Result<std::vector<GpuInstance>> ReadInstances(const NvmlLibrary& library, nvml::Device device,
                                               int gpu, std::span<const DriverProfile> profiles);

}  // namespace nos::device
