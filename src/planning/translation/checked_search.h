// A search whose result satisfies all filters.
#pragma once

#include <functional>

#include "planning/optimize/stages.h"
#include "planning/translation/live_filters.h"
#include "planning/translation/translate.h"

namespace nos::planning {

// Repeats the search until the live filters accept the plan (live_filters.h). A gang that lost its
// places because of a filter is then placed pod by pod (gang_assembly.h) if that improves the plan.
// `translation` belongs to the checker's snapshot, or to some of its nodes. Pairs of pod and node
// that filters reject are marked in it.
StagedResult SearchAndCheck(PlanChecker& checker, int max_reservations, Translation& translation,
                            GpuStates& states, const std::function<bool()>& out_of_time);

}  // namespace nos::planning
