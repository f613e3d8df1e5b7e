// How things will be once what has been asked for is done. Pure.
#pragma once

#include "cluster/snapshot.h"

namespace nos::controllers {

// The node's GPUs as its spec asks: used instances stay, wanted ones are there and free, free ones
// that are not wanted are gone. Every GPU fixed: a plan under way is not overtaken by the next.
cluster::NodeGpus AssumeSpec(const cluster::NodeInfo& info);

// Whether free instances for every slice that the pod asks for are on the node.
bool HasFreeSlices(const cluster::NodeInfo& info, const cluster::Pod& pod);

// Whether the pod asks for any slice, of a known profile or not: it is told when none has it.
// `whole`: whole GPUs count as such, since some node of the cluster makes instances of them.
bool AsksForSlices(const cluster::Pod& pod, bool whole);
bool GivesWhole(const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::controllers
