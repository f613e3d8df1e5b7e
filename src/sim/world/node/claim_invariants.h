// Invariants of pods with ResourceClaims, checked on the objects in the API server. Each function
// returns the violations as text.
#pragma once

#include <string>
#include <vector>

#include "cluster/objects.h"
#include "kube/client.h"
#include "sim/world/node/machine.h"

namespace nos::sim {

// Called when a scheduler has just bound the pod: each of its claims exists, is allocated with
// devices of the pod's node, and is reserved for the pod.
std::vector<std::string> CheckBoundClaims(const cluster::Pod& pod, kube::Client& client);

// Every pod that runs on the node and still has its object is in status.reservedFor of its claims,
// and the node's driver has prepared exactly the devices of the claims' allocations.
std::vector<std::string> CheckRunningClaims(const Machine& machine, kube::Client& client);

// Called when no pod is bound or ends any more: each entry of status.reservedFor is a pod that has
// not ended, and an allocated claim has a user.
std::vector<std::string> CheckUsers(const std::vector<Json>& claims,
                                    const std::vector<std::shared_ptr<const cluster::Pod>>& pods);

}  // namespace nos::sim
