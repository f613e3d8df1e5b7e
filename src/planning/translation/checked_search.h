// The search whose plan all filters agree with.
#pragma once

#include <functional>

#include "planning/translation/live_filters.h"
#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"

namespace nos::planning {

// Searches until the live filters agree with the plan (live_filters.h). Gangs that have lost their
// places by that are put together pod by pod (gang_assembly.h), as far as the plan gets better.
// `translation` is of the checker's snapshot, or of some of its nodes; what is ruled out on the way
// is ruled out in it afterwards.
StagedResult SearchAndCheck(PlanChecker& checker, int most_reservations, Translation& translation,
                            GpuStates& states, const std::function<bool()>& out_of_time);

}  // namespace nos::planning
