// An upper bound on the pods that any plan can place.
#pragma once

#include <vector>

#include "planning/gpu_states.h"

namespace nos::planning {

// `candidates`: the classes of which a pod could be placed if it were alone; others count nothing.
int UpperBound(const Problem& problem, GpuStates& states, const std::vector<int>& candidates);

}  // namespace nos::planning
