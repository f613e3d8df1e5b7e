// From "these pods on this node" to exact devices with few changes.
#pragma once

#include <vector>

#include "planning/model/draft.h"

namespace nos::planning {

// Places the pods (class indices) on a node of the draft that holds no planned pod yet. Keeps and
// reuses free instances where that does not cost a pod. False, and nothing placed: they do not fit
// there together.
bool PlaceTogether(Draft& draft, int node, const std::vector<int>& pods);

// The same pods on the node, each GPU serving the same slices, from other starts if that changes
// less. Slices that were placed one by one may have cost more free instances than they need.
// REQUIRES: Draft::Free::kKeep.
void Rearrange(Draft& draft, int node);

// The same pods on the same nodes, as a draft that keeps free instances. `tight` may have been made
// with Draft::Free::kIgnore.
Draft Realise(const Draft& tight);

}  // namespace nos::planning
