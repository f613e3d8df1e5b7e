// Rejects containers that request several MPS shares of GPUs or of MIG instances. The programs of a
// container reach the MPS daemon of one GPU or instance only, and a pod cannot require that its
// shares lie on the same one (see agent/mps_grant.h). nos does not serve such pods.
#pragma once

#include "cluster/objects.h"
#include "scheduling/remedies.h"

namespace nos::scheduling {

// True if a container requests more than one share, of one size or of several.
bool AsksForSeveralShares(const cluster::Pod& pod);
// One share of the sum in place of them, if GPUs may have so large a one, or several containers.
// REQUIRES: AsksForSeveralShares(pod).
Remedy RequestOneShare(const cluster::Pod& pod);

}  // namespace nos::scheduling
