#include "planning/names.h"

namespace nos::planning {

std::string_view NameOf(Objective objective) {
  switch (objective) {
    case Objective::kPods:
      return "pods";
    case Objective::kCompute:
      return "compute";
    case Objective::kMemory:
      return "memory";
  }
  return "unknown";
}

std::optional<Objective> FindObjective(std::string_view name) {
  for (const Objective objective : {Objective::kPods, Objective::kCompute, Objective::kMemory}) {
    if (NameOf(objective) == name) return objective;
  }
  return std::nullopt;
}

std::string_view NameOf(PlannedInstance::State state) {
  switch (state) {
    case PlannedInstance::State::kUsed:
      return "used";
    case PlannedInstance::State::kFree:
      return "free";
    case PlannedInstance::State::kNew:
      return "new";
  }
  return "unknown";
}

std::string_view NameOfOutcome(const PodOutcome& outcome) {
  return outcome.placed ? "placed" : "pending";
}

}  // namespace nos::planning
