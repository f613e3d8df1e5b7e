// Names of a plan's values in JSON, flags and scenarios.
//
// Pure; may be called from any thread.
#pragma once

#include <optional>
#include <string_view>

#include "planning/plan.h"

namespace nos::planning {

std::string_view NameOf(Objective objective);  // "pods", "compute", "memory"
std::optional<Objective> FindObjective(std::string_view name);
std::string_view NameOf(PlannedInstance::State state);      // "used", "free", "new"
std::string_view NameOfOutcome(const PodOutcome& outcome);  // "placed", "pending"

}  // namespace nos::planning
