// Nodes that are alike, pooled.
#pragma once

#include <map>
#include <vector>

#include "planning/model/gpu_states.h"

namespace nos::planning {

struct Pool {
  std::vector<int> nodes;
  bool slices_as_resources = false;
  // By state, with free instances as empty space: the GPUs, neighbours on different nodes if
  // possible.
  std::map<GpuStateId, std::vector<int>> gpus;
};

// Each node alone if there are few; nodes alike in all respects if that makes few pools; else those
// that the same of these pods may use; else all nodes together. Nodes that no pod of the classes
// may use are left out.
std::vector<Pool> MakePools(const Problem& problem, GpuStates& states,
                            const std::vector<int>& classes);

}  // namespace nos::planning
