// Resetting one GPU. NVML has no call for it that may be used (nvml.h): nvidia-smi does it.
//
// Facts (nvidia-smi(1), --gpu-reset and "RETURN VALUE"): it takes root, a GPU that no process has
// open, monitors included, and some seconds; it refuses GPUs that the platform cannot reset one by
// one. It says why on its output, and ends with 0, 3 (not available on this GPU), 4 (no permission)
// or something else.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace nos::device {

struct GpuResetOptions {
  std::string program = "nvidia-smi";  // a path, or a name to be found in $PATH
  Duration within = std::chrono::seconds(90);
};

// `uuid`: "GPU-...". Returns when it is done. Errors, with what the program said: kUnimplemented
// (it cannot be reset alone, or not here), kPermission (not allowed, or the program cannot be
// started), kUnavailable (something holds it, or anything else), kDeadline, kInvalid (no such UUID
// can be).
Status ResetGpu(const GpuResetOptions& options, const std::string& uuid);

}  // namespace nos::device
