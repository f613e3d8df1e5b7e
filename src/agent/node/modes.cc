#include "agent/node_modes.h"

#include <utility>

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

void ResetPauses::Failed(int gpu, std::string error, Time now) {
  Entry& entry = entries_[gpu];
  entry.until = now + pauses_.After(++entry.failures);
  entry.error = std::move(error);
}

bool ResetPauses::Pausing(int gpu, Time now) const {
  const auto found = entries_.find(gpu);
  return found != entries_.end() && found->second.until > now;
}

std::string ResetPauses::ErrorOf(int gpu) const {
  const auto found = entries_.find(gpu);
  return found == entries_.end() ? "" : found->second.error;
}

}  // namespace nos::agent
