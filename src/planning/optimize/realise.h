// Turns the pods of a node into exact devices with few changes.
#pragma once

#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

// Places the pods (class indices) on a node of the draft that has no planned pod yet. Reuses and
// keeps free instances where that costs no pod. Returns false and places nothing if they do not fit
// together.
bool PlaceTogether(Draft& draft, int node, const std::vector<int>& pods);

// Moves the slices of each GPU to other starts if that needs fewer changes; pods and GPUs stay the
// same. Slices that were placed one by one may destroy more free instances than necessary.
// REQUIRES: Draft::Free::kKeep.
void Rearrange(Draft& draft, int node);

// A draft with the same pods on the same nodes that keeps free instances. `tight` may use
// Draft::Free::kIgnore.
Draft Realise(const Draft& tight);

}  // namespace nos::planning
