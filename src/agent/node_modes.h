// GPUs whose MIG mode changes with a reset only (Ampere: nvml.h, nvmlDeviceSetMigMode), on nodes
// each of whose GPUs is used in its own way.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "device/backend.h"
#include "gpu/catalogue.h"
#include "kube/work_queue.h"

namespace nos::agent {

// Who makes that reset.
enum class ResetRule {
  kNever,  // nobody that an agent may wait for: they keep the mode that they have
  kGpu,    // the agent, of that GPU alone, while nobody uses anything of it
  kNode,   // whoever reboots the node: it is told that a mode waits for that
};
// "never", "gpu" or "node".
std::optional<ResetRule> ParseResetRule(std::string_view name);

bool NeedsReset(const gpu::Model& model);
// Whether the next reset changes its MIG mode.
bool WaitsForReset(const device::GpuInfo& info);

// GPUs that could not be reset lately: so long they keep the mode that they have.
class ResetPauses {
 public:
  // The pause after the first failure in a row, and the longest.
  explicit ResetPauses(kube::BackOff pauses) : pauses_(pauses) {}

  void Failed(int gpu, std::string error, Time now);
  void Succeeded(int gpu) { entries_.erase(gpu); }
  void Clear() { entries_.clear(); }

  bool Pausing(int gpu, Time now) const;
  // Of the last failure, unless one has succeeded since; else "".
  std::string ErrorOf(int gpu) const;

 private:
  struct Entry {
    int failures = 0;
    Time until{};
    std::string error;
  };
  kube::BackOff pauses_;
  std::map<int, Entry> entries_;
};

}  // namespace nos::agent
