// Derives a problem with the same pods and other nodes: a subset, or copies.
#pragma once

#include <span>

#include "planning/model/problem.h"

namespace nos::planning {

// The problem with these nodes, in this order; an index may occur several times.
Problem WithNodes(const Problem& from, std::span<const int> nodes);

}  // namespace nos::planning
