// The search with gangs kept in mind: what a gang lacks is placed wholly or not at all.
//
// The search knows levels, of which a later one never costs an earlier one. So each gang gets a
// level of its own before the pods of equal claim: what it lacks there, nobody behind it has taken.
// The first that is not whole is left out, and the search repeated, until all are.
#pragma once

#include <functional>

#include "planning/optimize/stages.h"

namespace nos::planning {

// As SearchInStages, which it is where there are no gangs.
StagedResult SearchWithGangs(const Problem& problem, GpuStates& states, int most_reservations,
                             const std::function<bool()>& out_of_time);

}  // namespace nos::planning
