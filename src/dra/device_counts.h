// What the devices of claims count for in quotas: as the extended resources that they would be with
// a device plugin, and by their class, under the name that ResourceQuota uses.
//
//   CountsOf(claim, *claim.allocation);   // {"nvidia.com/mig-1g.10gb": 2,
//                                         //  "mig.nvidia.com.deviceclass.resource.k8s.io/devices":
//                                         2}
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

// The resource that a device of NVIDIA's driver would be: "nvidia.com/mig-1g.10gb" for
// "gpu-0-mig-1g10gb-19-6", "nvidia.com/gpu" for "gpu-0". "": another device. The driver makes these
// names (cmd/gpu-kubelet-plugin/mig.go), and slices need not be known to read them.
std::string ResourceOf(std::string_view driver, std::string_view device);

// Shares of GPUs count for their memory: kGpuMemory, in GB.
inline constexpr const char* kGpuMemory = "nos.nebuly.com/gpu-memory";
int64_t GbOf(const Quantity& memory);

// "mig.nvidia.com" is "mig.nvidia.com.deviceclass.resource.k8s.io/devices".
std::string ResourceOfClass(const std::string& device_class);

// Of an allocated claim.
DeviceCounts CountsOf(const ResourceClaim& claim, const Allocation& allocation);

// True if the pod is charged for the claim: it is the first of its users, or would be.
bool IsChargedFor(const ResourceClaim& claim, const cluster::Pod& pod);

}  // namespace nos::dra
