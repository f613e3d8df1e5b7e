// Which pods are served, among equals: those that need fewer changes.
#pragma once

#include <functional>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

// Takes pods that need new instances off and places as many waiting ones of the same level and
// value on the same node instead, where that changes less: a free instance serves the one that asks
// for it before it is cut anew for another, and one slice is cut before seven are. One for one
// only. The score stays. False: there was no time to finish.
bool SwapForFewerChanges(Draft& draft, const std::vector<int>& candidates,
                         const std::function<bool()>& out_of_time);

}  // namespace nos::planning
