// The largest cost that an evaluation can have, as cel-go estimates it with Kubernetes' and DRA's
// knowledge of sizes. The API server refuses selectors whose estimate is too high.
#pragma once

#include <cstdint>

#include "cel/syntax/ast.h"

namespace nos::cel {

// For a checked tree.
uint64_t EstimateCost(const Ast& ast);

}  // namespace nos::cel
