// The cost of placing pods without slices on a node, computed as the scheduler does
// (scheduling/packing), so that they leave the resources that GPU pods need.
#pragma once

#include <cstdint>

#include "planning/model/draft.h"

namespace nos::planning {

// Cost of a pod of the shape on the node in its current state; compare between nodes. Assumes the
// smallest requests of the shape. REQUIRES: the shape has no slices.
uint64_t PackingCost(const Draft& draft, int shape, int node);

}  // namespace nos::planning
