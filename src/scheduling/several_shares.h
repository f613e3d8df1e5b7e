// Rejects containers that request several MPS shares of GPUs or of MIG instances. The programs of a
// container reach the MPS daemon of one GPU or instance only, and a pod cannot require that its
// shares lie on the same one (see agent/mps_grant.h). nos does not serve such pods.
#pragma once

#include "cluster/objects.h"

namespace nos::scheduling {

// True if a container requests more than one share, of one size or of several.
bool AsksForSeveralShares(const cluster::Pod& pod);

}  // namespace nos::scheduling
