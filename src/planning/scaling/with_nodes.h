// The same pods on other nodes: copies of some, or some of them alone.
#pragma once

#include <span>

#include "planning/model/problem.h"

namespace nos::planning {

// These nodes of the problem, in this order; one that stands there twice is two nodes.
Problem WithNodes(const Problem& from, std::span<const int> nodes);

}  // namespace nos::planning
