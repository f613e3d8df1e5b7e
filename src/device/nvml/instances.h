// The GPU instances of one GPU with what is in them, as the driver lists them.
//
// GPU instances are listed by profile, not through the list of MIG devices: an instance without a
// compute instance is no MIG device and would be overlooked.
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

// The compute instances in a GPU instance, by id.
Result<std::vector<ComputeSlice>> ReadComputeSlices(const nvml::Functions& call,
                                                    nvml::GpuInstanceRef instance);

// All GPU instances, by start. One that holds something else than one full-size compute instance
// (somebody else cut it further) is reported under the name of its first part ("1c.3g.20gb"), which
// no catalogue knows: it is left alone.
// Errors: as ToStatus. It is all or nothing: what cannot be read must not pass for absent.
Result<std::vector<GpuInstance>> ReadInstances(const NvmlLibrary& library, nvml::Device device,
                                               int gpu, std::span<const DriverProfile> profiles);

}  // namespace nos::device
