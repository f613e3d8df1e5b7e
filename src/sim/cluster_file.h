// Reads the nodes of a virtual cluster from a file: Kubernetes Nodes, written by hand or dumped
// from a real cluster with `kubectl get nodes -o yaml`.
#pragma once

#include <string_view>
#include <vector>

#include "sim/specs.h"

namespace nos::sim {

// Reads labels (including the number of GPUs and their product), taints, capacity and, from status
// annotations, the instances of each GPU and whether they are in use. Skips objects of other kinds.
// Error: kInvalid with `source`, document and field: also if there is no node, or if the API server
// would refuse a node.
Result<std::vector<NodeSpec>> ReadCluster(std::string_view text, std::string_view source,
                                          const gpu::Catalogue& catalogue);

}  // namespace nos::sim
