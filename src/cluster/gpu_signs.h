// The labels and annotations of nodes that describe GPUs (annotations.h).
#pragma once

#include "cluster/objects.h"

namespace nos::cluster {

// True if both versions of a node describe the same GPUs. Ignores annotations of other tools and of
// nodes that have not opted in. Pure.
bool HaveSameGpuSigns(const Node& before, const Node& after);

}  // namespace nos::cluster
