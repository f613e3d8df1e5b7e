#pragma once

#include <string>

namespace nos::gpu {

// Why a part of the target layout does not exist (yet).
struct Obstacle {
  int gpu = 0;
  std::string placement;  // "3g.20gb@4", or "" for the whole GPU
  // InUse, Foreign, Illegal, Deferred, MigDisabled, NoSuchGpu, NotSwitched; from the agent also
  // DeviceError, GpuUnhealthy, BadSpec, NeedsReboot, NotReset.
  std::string code;
  std::string message;  // for a person
};

}  // namespace nos::gpu
