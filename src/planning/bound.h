// An upper bound on the pods that any plan can place.
#pragma once

#include <vector>

#include "planning/gpu_states.h"

namespace nos::planning {

struct Bound {
  int pods = 0;
  // By class: what share of the scarce slots and resources a pod takes, as the proof values them. A
  // plan for many pods takes cheap ones.
  std::vector<double> prices;
};

// `candidates`: the classes of which a pod could be placed if it were alone; others count nothing.
Bound UpperBound(const Problem& problem, GpuStates& states, const std::vector<int>& candidates);

}  // namespace nos::planning
