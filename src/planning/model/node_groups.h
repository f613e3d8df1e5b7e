// Groups equal nodes, so that a large problem becomes small.
#pragma once

#include <map>
#include <vector>

#include "planning/model/gpu_states.h"

namespace nos::planning {

struct NodeGroup {
  std::vector<int> nodes;
  bool slices_as_resources = false;
  // GPUs by state, with free instances as empty space. Neighbours in a list are on different nodes
  // if possible.
  std::map<GpuStateId, std::vector<int>> gpus;
};

// Chooses the first grouping with few groups: each node alone; nodes that are equal in all
// respects; nodes that the same of these pod classes may use; all nodes together. Nodes that no pod
// of the classes may use are left out.
std::vector<NodeGroup> MakePools(const Problem& problem, GpuStates& states,
                                 const std::vector<int>& classes);

}  // namespace nos::planning
