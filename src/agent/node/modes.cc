#include "agent/node_modes.h"

namespace nos::agent {

std::optional<ResetRule> ParseResetRule(std::string_view name) {
  if (name == "never") return ResetRule::kNever;
  if (name == "gpu") return ResetRule::kGpu;
  if (name == "node") return ResetRule::kNode;
  return std::nullopt;
}

bool NeedsReset(const gpu::Model& model) { return model.architecture() == "Ampere"; }

bool WaitsForReset(const device::GpuInfo& info) {
  return info.mig_capable && info.mig_enabled != info.mig_pending;
}

}  // namespace nos::agent
