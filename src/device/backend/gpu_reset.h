// Resets one GPU with nvidia-smi: NVML has no public call for it (nvml.h).
//
// Facts (nvidia-smi(1), --gpu-reset and "RETURN VALUE"): a reset needs root, a GPU that no process
// has open, monitors included, and some seconds; nvidia-smi refuses GPUs that the platform cannot
// reset individually. It prints the cause and exits with 0, 3 (not available on this GPU), 4 (no
// permission) or another code.
#pragma once

#include <string>

#include "base/clock.h"
#include "base/status.h"

namespace nos::device {

struct GpuResetOptions {
  std::string program = "nvidia-smi";  // a path, or a name searched in $PATH
  Duration within = std::chrono::seconds(90);
};

// `uuid`: "GPU-...". Returns after the reset. Errors, with the program's output: kUnimplemented (it
// cannot be reset alone, or not on this machine), kPermission (not allowed, or the program cannot
// be started), kUnavailable (a process holds it, or any other failure), kDeadline, kInvalid
// (malformed UUID).
Status ResetGpu(const GpuResetOptions& options, const std::string& uuid);

}  // namespace nos::device
