// Of few new nodes the cheapest mix, by looking at all that cost less.
#pragma once

#include <functional>
#include <vector>

#include "planning/scaling/bins.h"
#include "planning/scaling/cover.h"

namespace nos::planning {

// Whether there are few enough pods and nodes for it.
bool IsSmall(const std::vector<NodeType>& node_types, const std::vector<int>& wanted);

// Puts the cheapest mix that serves `wanted` (pods by class) as well as `bins` do in their place.
// True: it is proven that none is cheaper. `all`: bins serve all that is wanted.
bool FindCheapest(const Problem& types, const std::vector<NodeType>& node_types,
                  const Coverer& coverer, GpuStates& states, const std::vector<int>& wanted,
                  bool all, const std::function<bool()>& out_of_time, Bins& bins);

// The planner's search on these nodes, of which `bins` has one each: the pods that it places there.
// True: it has been proven that no others would serve better.
bool SearchOn(const Problem& types, GpuStates& states, const std::vector<int>& wanted,
              const std::function<bool()>& out_of_time, Bins& bins);

}  // namespace nos::planning
