// The MIG profiles of a GPU as its driver reports them. All facts come from the driver; only the
// canonical name comes from the catalogue, because names differ between drivers (3g.39gb and
// 3g.40gb are one profile).
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
  std::string name;        // the driver's name: "3g.39gb"
  std::string canonical;   // the catalogue's name of the same profile, else `name`
  unsigned nvml_enum = 0;  // NVML_GPU_INSTANCE_PROFILE_*
  unsigned id = 0;         // nvmlGpuInstanceProfileInfo_t.id
  int slices = 0;          // compute slices
  int max_count = 0;       // on an empty GPU
  int memory_mib = 0;
  int multiprocessors = 0;
  gpu::Engines engines;
  std::vector<DriverPlacement> placements;  // by start; on an empty GPU
  Status placements_status;                 // the error if `placements` is unknown
};

// The starts of its placements: "0,2,4".
std::string StartsText(const DriverProfile& profile);

// A compute-instance profile of a GPU instance, as reported by the driver.
struct DriverComputeProfile {
  unsigned id = 0;
  int slices = 0, max_count = 0, multiprocessors = 0;
};

// Empty if the driver reports profiles only in MIG mode (Ampere) and it is off. `model` may be
// null: not in the catalogue. Errors: as ToStatus; kInternal for an impossible answer.
Result<std::vector<DriverProfile>> ReadProfiles(const nvml::Functions& call, nvml::Device device,
                                                int64_t gpu_memory_mib, const gpu::Model* model);
Result<std::vector<DriverComputeProfile>> ReadComputeProfiles(const nvml::Functions& call,
                                                              nvml::GpuInstanceRef instance);

// The compute profile that covers a GPU instance of `profile` completely: all slices and all
// multiprocessors. The double-memory 1g of Hopper and later has two compute profiles of one slice,
// and the first sees only the multiprocessors of a plain 1g (kubernetes-sigs dra-driver-nvidia-gpu
// issue 1454). Among equals the lowest id wins. Null: none.
const DriverComputeProfile* FullSize(const std::vector<DriverComputeProfile>& candidates,
                                     const DriverProfile& profile);

// Reads up to a NUL or `size` bytes, and replaces control characters: a driver's strings appear in
// logs, annotations and terminals.
std::string DriverString(const char* text, size_t size);

}  // namespace nos::device
