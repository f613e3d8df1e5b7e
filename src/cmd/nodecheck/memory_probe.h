// A CUDA program that uses GPU memory up to a limit, to prove that the driver keeps it: with the
// driver's library alone, in a process of its own, which an error of the driver cannot harm.
//
//   NOS_ASSIGN(const MemoryProbe probe, ProbeMemory(library, 1024, {"CUDA_VISIBLE_DEVICES=0"}));
//   const std::string problem = ProblemOf(probe, 1024);
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace nos::cmd {

struct MemoryProbe {
  int64_t gpus = 0;           // that the program sees
  int64_t allocated_mib = 0;  // written by the GPU; more is refused, or beyond the limit
};

// Starts this program again as a child with `variables` in its environment, which does what
// RunMemoryProbe does. Errors: kNotFound (the library of CUDA cannot be loaded, or there is no
// limit), kUnavailable (CUDA fails, with its error).
Result<MemoryProbe> ProbeMemory(const std::string& library, int64_t limit_mib,
                                const std::vector<std::string>& variables);

// In the child: allocates memory of the first GPU piece by piece, and has the GPU write each, until
// the driver refuses one or the limit is passed. Prints a MemoryProbe as JSON; returns the exit
// status.
int RunMemoryProbe(const std::string& library, int64_t limit_mib);

// Why the limit does not hold, or is much below what was promised; "": it holds.
std::string ProblemOf(const MemoryProbe& probe, int64_t limit_mib);

// The environment of this process with `variables` in place of its own of the same names.
std::vector<std::string> EnvironmentWith(const std::vector<std::string>& variables);

}  // namespace nos::cmd
