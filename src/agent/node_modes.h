// GPUs whose MIG mode changes only with a reset (Ampere: nvml.h, nvmlDeviceSetMigMode), on hybrid
// nodes, where each GPU has its own sharing mode.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/back_off.h"
#include "base/clock.h"
#include "device/backend.h"
#include "gpu/catalogue.h"

namespace nos::agent {

// Which component performs the reset.
enum class ResetRule {
  kNever,  // none that an agent may wait for: GPUs keep their mode
  kGpu,    // the agent, for a single GPU while no pod uses any of it
  kNode,   // a reboot of the node, which a condition requests
};
// "never", "gpu" or "node".
std::optional<ResetRule> ParseResetRule(std::string_view name);

bool NeedsReset(const gpu::Model& model);
// True if the next reset changes the GPU's MIG mode.
bool WaitsForReset(const device::GpuInfo& info);

// Back-off of GPUs whose reset has failed. They keep their mode meanwhile.
class ResetPauses {
 public:
  // `pauses`: the pause after the first failure in a row, and the longest pause.
  explicit ResetPauses(BackOff pauses) : pauses_(pauses) {}

  void Failed(int gpu, std::string error, Time now);
  void Succeeded(int gpu) { entries_.erase(gpu); }
  void Clear() { entries_.clear(); }

  bool Pausing(int gpu, Time now) const;
  // The error of the last failure unless a reset has succeeded since; "" otherwise.
  std::string ErrorOf(int gpu) const;

 private:
  struct Entry {
    int failures = 0;
    Time until{};
    std::string error;
  };
  BackOff pauses_;
  std::map<int, Entry> entries_;
};

}  // namespace nos::agent
