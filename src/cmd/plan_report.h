// A plan as JSON (the documented shape of `nos plan -o json`) and as text for people.
#pragma once

#include <string>

#include "base/clock.h"
#include "codec/json.h"
#include "planning/planner.h"

namespace nos::cmd {

Json PlanToJson(const planning::Plan& plan, planning::Objective objective, Duration took);
std::string PlanToText(const planning::Plan& plan, Duration took);

// One GPU's slots as text: "[3g.20gb    |1g.5gb|··]".
std::string LayoutText(const planning::PlannedGpu& gpu);

}  // namespace nos::cmd
