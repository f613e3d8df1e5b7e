#pragma once

#include <string>

namespace nos::gpu {

// Why a part of the target layout does not exist (yet).
struct Obstacle {
  int gpu = 0;
  std::string placement;  // "3g.20gb@4", or "" for the whole GPU
  std::string code;       // one of `obstacles`
  std::string message;    // for a person
};

namespace obstacles {

inline constexpr const char *kInUse = "InUse", *kForeign = "Foreign", *kIllegal = "Illegal",
                            *kDeferred = "Deferred", *kMigDisabled = "MigDisabled",
                            *kNoSuchGpu = "NoSuchGpu", *kNotSwitched = "NotSwitched";
// Only from the agent.
inline constexpr const char *kDeviceError = "DeviceError", *kGpuUnhealthy = "GpuUnhealthy",
                            *kBadSpec = "BadSpec", *kNeedsReboot = "NeedsReboot",
                            *kNotReset = "NotReset";

}  // namespace obstacles

}  // namespace nos::gpu
