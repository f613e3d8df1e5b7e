// The search with gangs: all pods that a gang lacks are placed, or none.
//
// In a search, a later level never displaces an earlier one. Therefore each gang gets its own level
// before pods of the same rank, and less urgent pods cannot take its places. The first gang that is
// incomplete is left out and the search is repeated until all remaining gangs are complete.
#pragma once

#include <functional>

#include "planning/optimize/stages.h"

namespace nos::planning {

// Like SearchInStages; identical if there are no gangs.
StagedResult SearchWithGangs(const Problem& problem, GpuStates& states, int max_reservations,
                             const std::function<bool()>& out_of_time);

}  // namespace nos::planning
