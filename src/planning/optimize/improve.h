// Looks for a better plan by emptying a node or two and placing their pods anew together with some
// that wait: what a first pass cannot see, because a placed pod never moves in it.
#pragma once

#include <functional>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

// Never makes the score worse. Deterministic; ends by itself after a number of fruitless attempts.
// Returns false when out_of_time ended it. `orders`: the candidates in several orders worth trying.
bool Improve(Draft& draft, const std::vector<int>& candidates,
             const std::vector<std::vector<int>>& orders, const std::function<bool()>& out_of_time);

}  // namespace nos::planning
