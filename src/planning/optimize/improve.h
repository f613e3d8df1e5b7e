// Improves a plan by local search: removes the pods of one or two nodes and places them again
// together with some pending pods. A first pass cannot find such plans, because it never moves a
// placed pod.
#pragma once

#include <functional>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

// Never lowers the score. Deterministic; ends after a number of attempts without improvement.
// Returns false if out_of_time ended it. `orders`: several useful orders of the candidates.
bool Improve(Draft& draft, const std::vector<int>& candidates,
             const std::vector<std::vector<int>>& orders, const std::function<bool()>& out_of_time);

}  // namespace nos::planning
