// The nodes of a virtual cluster from a file: Kubernetes Nodes, written by hand or dumped from a
// real cluster with `kubectl get nodes -o yaml`.
#pragma once

#include <string_view>
#include <vector>

#include "sim/specs.h"

namespace nos::sim {

// Labels (the number of GPUs and their product among them), taints, capacity and, where status
// annotations tell, what the GPUs are cut into and which instances are in use. Objects of other
// kinds are passed over. Error: kInvalid: `source`, document and field; no node at all; a node that
// the API server would refuse.
Result<std::vector<NodeSpec>> ReadCluster(std::string_view text, std::string_view source,
                                          const gpu::Catalogue& catalogue);

}  // namespace nos::sim
