// GPUs and parts of GPUs that a pod requests, without regard to the GPU that it ran on.
//
//   const std::vector<DeviceRequest> requests = DeviceRequestsOf(pod, catalogue);
//
// Pure: no input or output. Internal to this library.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/catalogue.h"
#include "telemetryserver/state/objects.h"

namespace nos::telemetryserver {

struct DeviceRequest {
  enum class Kind {
    kGpu,        // a whole GPU
    kProfile,    // a MIG instance of this profile
    kMemory,     // a share of this many GiB
    kTimeSlice,  // a time slice
  };
  Kind kind = Kind::kGpu;
  std::string profile{};  // as resource names have it: "1g.5gb.me"
  int64_t gib = 0;
  int64_t count = 1;  // at least 1
  friend auto operator<=>(const DeviceRequest&, const DeviceRequest&) = default;
};

// Sorted. Empty: it requests none that nos knows. Devices of claims count as the extended resources
// that they would be; a claim that is not allocated yet names only its class, and does not count.
std::vector<DeviceRequest> DeviceRequestsOf(const Pod& pod, const gpu::Catalogue& catalogue);

}  // namespace nos::telemetryserver
