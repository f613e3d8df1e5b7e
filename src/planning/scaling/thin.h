// The same pods on fewer or cheaper new nodes.
#pragma once

#include <functional>
#include <vector>

#include "planning/scaling/bins.h"
#include "planning/scaling/cover.h"

namespace nos::planning {

// Empties nodes whose pods find room on the others, those first that give least for their price,
// and takes cheaper ones where the same pods fit. Never costs a pod; work is bounded.
// Deterministic.
Bins Thin(const Problem& types, const std::vector<NodeType>& node_types, Coverer& coverer,
          GpuStates& states, Bins bins, const std::function<bool()>& out_of_time);

// Of each type, as many of the nodes that hold something as come anyway are free.
void UseFreeFirst(const std::vector<NodeType>& node_types, Bins& bins);

}  // namespace nos::planning
