// The DRA drivers whose devices are GPUs and MIG instances, named alike: "gpu-0" and
// "gpu-0-mig-1g10gb-19-6" (dra/placement/nvidia.h).
#pragma once

#include <string_view>

namespace nos::dra {

inline constexpr std::string_view kNvidiaDriver = "gpu.nvidia.com";
inline constexpr std::string_view kNosDriver = "gpu.nos.nebuly.com";

inline bool IsGpuDriver(std::string_view driver) {
  return driver == kNvidiaDriver || driver == kNosDriver;
}

// The name of an attribute without the domain of its driver.
inline std::string_view PlainAttribute(std::string_view name, std::string_view driver) {
  const bool full =
      name.size() > driver.size() && name.starts_with(driver) && name[driver.size()] == '/';
  return full ? name.substr(driver.size() + 1) : name;
}

}  // namespace nos::dra
