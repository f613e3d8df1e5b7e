// GPUs whose MIG mode changes only with a reset (Ampere: nvml.h, nvmlDeviceSetMigMode), on hybrid
// nodes, where each GPU has its own sharing mode.
#pragma once

#include <optional>
#include <string_view>

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

}  // namespace nos::agent
