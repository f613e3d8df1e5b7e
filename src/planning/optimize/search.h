// Searches the best plan of a Problem.
//
//   SearchResult found = Search(problem, states, out_of_time);
//
// 1. Place all pods at once, largest slices first. This usually places every pod, and the search
//    only has to save changes.
// 2. Otherwise solve a small problem exactly (exact.h).
// 3. A big problem is filled level by level in several orders, then improved until no attempt helps
//    or the time limit expires.
//
// Deterministic unless out_of_time stops it.
#pragma once

#include <functional>
#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

struct SearchResult {
  Draft draft;
  int upper_bound = 0;
  bool complete = true;  // see Plan::complete
};

SearchResult Search(const Problem& problem, GpuStates& states,
                    const std::function<bool()>& out_of_time);

}  // namespace nos::planning
