// What a driver says a GPU can be cut into. Facts come from the driver; only the name under which
// the rest of nos knows a profile comes from the catalogue, because names drift between drivers
// (3g.39gb and 3g.40gb are one profile).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "device/nvml_abi.h"
#include "gpu/catalogue.h"

namespace nos::device {

struct DriverPlacement {
  uint8_t start = 0, size = 0;  // slots
  friend bool operator==(const DriverPlacement&, const DriverPlacement&) = default;
};

struct DriverProfile {
  std::string name;        // as the driver has it: "3g.39gb"
  std::string canonical;   // the catalogue's name of the same profile, else `name`
  unsigned nvml_enum = 0;  // NVML_GPU_INSTANCE_PROFILE_*
  unsigned id = 0;         // nvmlGpuInstanceProfileInfo_t.id
  int slices = 0;          // compute slices
  int max_count = 0;       // instances that an empty GPU holds
  int memory_mib = 0;
  int multiprocessors = 0;
  gpu::Engines engines;
  std::vector<DriverPlacement> placements;  // by start; on an empty GPU
  Status placements_status;                 // why `placements` is not known
};

// The starts of its placements: "0,2,4".
std::string StartsText(const DriverProfile& profile);

// What the driver says of one compute-instance profile of a GPU instance.
struct DriverComputeProfile {
  unsigned id = 0;
  int slices = 0, max_count = 0, multiprocessors = 0;
};

// Empty when the driver tells profiles only in MIG mode (Ampere) and it is off. `model` may be
// null: not in the catalogue. Errors: as ToStatus; kInternal for an answer that cannot be true.
Result<std::vector<DriverProfile>> ReadProfiles(const nvml::Functions& call, nvml::Device device,
                                                int64_t gpu_memory_mib, const gpu::Model* model);
Result<std::vector<DriverComputeProfile>> ReadComputeProfiles(const nvml::Functions& call,
                                                              nvml::GpuInstanceRef instance);

// The one to make in a GPU instance of `profile` so that it gets all of it: all slices, and all
// multiprocessors. The double-memory 1g of Hopper and later has two compute profiles of one slice,
// of which the first sees only the multiprocessors of a plain 1g (kubernetes-sigs
// dra-driver-nvidia-gpu issue 1454). Of equals the one with the lowest id. Null: there is none.
const DriverComputeProfile* FullSize(const std::vector<DriverComputeProfile>& candidates,
                                     const DriverProfile& profile);

// Bytes up to a NUL or `size`, whichever comes first, control characters replaced: a driver's
// strings end up in logs, annotations and terminals.
std::string DriverString(const char* text, size_t size);

}  // namespace nos::device
