// The DRA drivers whose devices are GPUs and MIG instances, named alike: "gpu-0" and
// "gpu-0-mig-1g10gb-19-6" (dra/placement/nvidia.h). nos's own also has devices that several claims
// share: "gpu-0-mps", "gpu-0-mig-1g10gb-19-6-time-slices".
#pragma once

#include <string_view>

namespace nos::dra {

inline constexpr std::string_view kNvidiaDriver = "gpu.nvidia.com";
inline constexpr std::string_view kNosDriver = "gpu.nos.nebuly.com";

inline bool IsGpuDriver(std::string_view driver) {
  return driver == kNvidiaDriver || driver == kNosDriver;
}

// How claims use a device at the same time.
enum class DeviceSharing {
  kNone,       // one claim has the device
  kMps,        // several claims, each with an amount of memory that MPS limits
  kTimeSlices  // several claims in turns
};

// The attribute `type` of a shared device, and the end of its name behind a hyphen.
inline constexpr std::string_view kMpsType = "mps", kTimeSlicesType = "time-slices";

// "" for kNone.
inline constexpr std::string_view SharedTypeOf(DeviceSharing sharing) {
  if (sharing == DeviceSharing::kNone) return "";
  return sharing == DeviceSharing::kMps ? kMpsType : kTimeSlicesType;
}

// Removes the end of a shared device's name: what is left names the device that is shared.
inline constexpr DeviceSharing TakeSharing(std::string_view& device) {
  for (const DeviceSharing sharing : {DeviceSharing::kMps, DeviceSharing::kTimeSlices}) {
    const std::string_view type = SharedTypeOf(sharing);
    if (device.size() <= type.size() || !device.ends_with(type)) continue;
    if (device[device.size() - type.size() - 1] != '-') continue;
    device.remove_suffix(type.size() + 1);
    return sharing;
  }
  return DeviceSharing::kNone;
}

// The name of an attribute without the domain of its driver.
inline std::string_view PlainAttribute(std::string_view name, std::string_view driver) {
  const bool full =
      name.size() > driver.size() && name.starts_with(driver) && name[driver.size()] == '/';
  return full ? name.substr(driver.size() + 1) : name;
}

}  // namespace nos::dra
