// Exhaustive node mix: finds the cheapest mix of few new nodes by checking all cheaper ones.
#pragma once

#include <functional>
#include <vector>

#include "planning/scaling/bins.h"
#include "planning/scaling/greedy_node_mix.h"

namespace nos::planning {

// True if there are few enough pods and nodes for FindCheapestNodeMix.
bool IsSmall(const std::vector<NodeType>& node_types, const std::vector<int>& wanted);

// Replaces `bins` by the cheapest mix that serves `wanted` (pods by class) equally well. True: no
// mix is cheaper, proven. `all`: `bins` serves all of `wanted`.
bool FindCheapestNodeMix(const Problem& types, const std::vector<NodeType>& node_types,
                         const GreedyNodeMix& coverer, GpuStates& states,
                         const std::vector<int>& wanted, bool all,
                         const std::function<bool()>& out_of_time, Bins& bins);

// Runs the planner's search on these nodes (`bins` has one per node) and assigns the placed pods to
// the bins. True: the result is proven optimal for these nodes.
bool SearchOn(const Problem& types, GpuStates& states, const std::vector<int>& wanted,
              const std::function<bool()>& out_of_time, Bins& bins);

}  // namespace nos::planning
