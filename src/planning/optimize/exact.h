// Solves a small problem exactly.
//
// For every node it enumerates the sets of pods that fit (resources and slices together). Then it
// adds node after node and keeps the sets of pods that can be placed so far. Equal pods are merged,
// so a set is a vector of counts.
#pragma once

#include <optional>

#include "planning/model/draft.h"

namespace nos::planning {

struct ExactResult {
  Draft draft;
  int most_pods = 0;  // upper limit for all plans, ignoring priorities
};

// nullopt if the problem is too big, or if a pod uses slices of GPUs that nos does not partition.
// Uses Draft::Free::kKeep. `candidates`: the classes to place.
std::optional<ExactResult> SolveExactly(const Problem& problem, GpuStates& states,
                                        const std::vector<int>& candidates);

}  // namespace nos::planning
