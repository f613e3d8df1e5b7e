// Nodes that the cluster has lost.
#pragma once

#include "cluster/objects.h"

namespace nos::scheduling {

// The node has lost contact with the cluster, so its pods do not finish terminating. Source: taint
// node.kubernetes.io/unreachable of the node lifecycle controller.
bool IsLost(const cluster::Node& node);

}  // namespace nos::scheduling
