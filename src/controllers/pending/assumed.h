// The state of nodes after requested changes are carried out. Pure functions.
#pragma once

#include "cluster/snapshot.h"

namespace nos::controllers {

// The node's GPUs as its spec requests them: used instances stay, requested ones exist and are
// free, other free ones are destroyed. Every GPU is fixed, so that no plan overtakes one that is
// under way.
cluster::NodeGpus AssumeSpec(const cluster::NodeInfo& info);

// True if the node has free instances for every slice that the pod requests.
bool HasFreeSlices(const cluster::NodeInfo& info, const cluster::Pod& pod);

// True if the pod requests any slice, of a known profile or not: an unknown one is reported to the
// pod. `whole`: whole GPUs count as slices, because some node of the cluster makes instances of
// them.
bool AsksForSlices(const cluster::Pod& pod, bool whole);
bool GivesWhole(const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::controllers
