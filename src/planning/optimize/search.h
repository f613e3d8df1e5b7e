// The search for the best plan of a Problem.
//
//   SearchResult found = Search(problem, states, out_of_time);
//
// First everything at once, largest slices first: on most days that places every pod, and then only
// changes are left to be saved. Otherwise a small problem is solved exactly, and a big one level by
// level, in several orders, then improved until nothing helps or time is up. Deterministic.
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
