// Counts the devices of claims for quotas. A device counts as the extended resource that it would
// be with a device plugin, and by its class, under the name that ResourceQuota uses.
//
//   CountsOf(claim, *claim.allocation);
//   // {"nvidia.com/mig-1g.10gb": 2, "mig.nvidia.com.deviceclass.resource.k8s.io/devices": 2}
//
// Devices for admin access do not count: they take nothing from others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cluster/objects.h"
#include "dra/objects.h"

namespace nos::dra {

using DeviceCounts = std::map<std::string, int64_t>;

// Returns the resource of a device of NVIDIA's driver or of nos's: "nvidia.com/mig-1g.10gb" for
// "gpu-0-mig-1g10gb-19-6", "nvidia.com/gpu" for "gpu-0", "nvidia.com/gpu.shared" for a time slice
// of it, the instance for one of an instance; "" for another device. The driver makes these names
// (cmd/gpu-kubelet-plugin/mig.go), so this needs no ResourceSlice.
std::string ResourceOf(std::string_view driver, std::string_view device);

// A share of a GPU counts for its memory, as this resource.
inline constexpr const char* kGpuMemory = "nos.nebuly.com/gpu-memory";
// Rounds up to whole GB.
int64_t GbOf(const Quantity& memory);

// "mig.nvidia.com" is "mig.nvidia.com.deviceclass.resource.k8s.io/devices".
std::string ResourceOfClass(const std::string& device_class);

// Counts the devices of an allocated claim.
DeviceCounts CountsOf(const ResourceClaim& claim, const Allocation& allocation);

}  // namespace nos::dra
