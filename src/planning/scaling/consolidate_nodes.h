// Consolidates new nodes: the same pods on fewer or cheaper nodes.
#pragma once

#include <functional>
#include <vector>

#include "planning/scaling/bins.h"
#include "planning/scaling/greedy_node_mix.h"

namespace nos::planning {

// Empties nodes whose pods fit on the others, those with the lowest worth per price first, and
// replaces nodes by cheaper ones where the same pods fit. Never leaves a pod unserved. Work is
// bounded. Deterministic.
Bins ConsolidateNewNodes(const Problem& types, const std::vector<NodeType>& node_types,
                         GreedyNodeMix& coverer, GpuStates& states, Bins bins,
                         const std::function<bool()>& out_of_time);

// Marks nodes with pods as free, for each type as many as come in any case.
void UseFreeFirst(const std::vector<NodeType>& node_types, Bins& bins);

}  // namespace nos::planning
