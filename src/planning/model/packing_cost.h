// How nodes are weighed for pods without slices: as the scheduler does it (scheduling/packing), so
// that they leave to GPU pods what those need.
#pragma once

#include <cstdint>

#include "planning/model/draft.h"

namespace nos::planning {

// What a pod of the shape costs the node as the draft has it; compare between nodes. Counts the
// least that pods of the shape ask for. REQUIRES: the shape has no slices.
uint64_t PackingCost(const Draft& draft, int shape, int node);

}  // namespace nos::planning
