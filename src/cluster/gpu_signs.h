// What nodes say of their GPUs in labels and annotations (annotations.h).
#pragma once

#include "cluster/objects.h"

namespace nos::cluster {

// Whether the node says the same of its GPUs before and after: others' annotations, and those of
// nodes that have not opted in, say nothing of them. Pure.
bool SayTheSameOfGpus(const Node& before, const Node& after);

}  // namespace nos::cluster
