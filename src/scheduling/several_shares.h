// Rejects containers that request several MPS shares of GPUs or of MIG instances. The programs of a
// container reach the MPS daemon of one GPU or instance only, and a pod cannot require that its
// shares lie on the same one (see agent/mps_grant.h). nos does not serve such pods.
#pragma once

#include "cluster/objects.h"

namespace nos::scheduling {

// The first container that requests more than one share, of one size or of several; null: none
// does.
const cluster::Container* FindSeveralShares(const cluster::Pod& pod);
bool AsksForSeveralShares(const cluster::Pod& pod);

}  // namespace nos::scheduling
