// The best plan of a small problem, proven.
//
// For every node: which sets of pods it can hold (resources and slices together). Then, node by
// node, which sets can be placed so far. Alike pods are merged, so a set is a vector of counts.
#pragma once

#include <optional>

#include "planning/model/draft.h"

namespace nos::planning {

struct ExactResult {
  Draft draft;
  int most_pods = 0;  // that any plan can place, priorities aside
};

// None when the problem is too big for it, or when some pods' slices are not on GPUs nos cuts.
// Works on Draft::Free::kKeep; `candidates` are the classes that matter.
std::optional<ExactResult> SolveExactly(const Problem& problem, GpuStates& states,
                                        const std::vector<int>& candidates);

}  // namespace nos::planning
