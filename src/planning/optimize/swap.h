// Chooses between equally valuable pods those that need fewer changes.
#pragma once

#include <functional>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

// Replaces placed pods that need new instances by as many pending pods of the same level and value
// on the same node if that needs fewer changes: a pod that can use a free instance is preferred to
// one that needs repartitioning, and one new slice to seven. Swaps one pod for one. The score does
// not change. False: the time limit expired.
bool SwapForFewerChanges(Draft& draft, const std::vector<int>& candidates,
                         const std::function<bool()>& out_of_time);

}  // namespace nos::planning
