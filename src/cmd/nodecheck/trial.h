// Tries what the agent does, on idle GPUs: creates a MIG instance and removes it where MIG mode is
// on, or starts an MPS daemon and ends it; a CUDA program shows meanwhile that the limit of memory
// holds. MIG mode and compute mode are never changed; a GPU with
// programs or instances is not touched, nor any GPU while an agent runs, and the findings say why.
#pragma once

#include <string>

#include "cmd/findings/verdict.h"
#include "cmd/nodecheck/machine.h"

namespace nos::cmd {

struct TrialOptions {
  // Run with the instance or share as its only GPU; it succeeds if it exits with 0. "": none.
  std::string program;
  std::string mps_folder;  // for the daemon's pipes and logs; must exist
  // For a program that uses memory up to the limit; a path, or a name that the loader knows.
  std::string cuda_library = "libcuda.so.1";
};

void TryGpus(device::NvmlBackend& backend, const Machine& machine, const TrialOptions& options,
             Findings& findings);

}  // namespace nos::cmd
