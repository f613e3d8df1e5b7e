// Nodes that were promised to pods which wait: for the end of those that were evicted for them.
//
// Semantics: kube-scheduler's RunFilterPluginsWithNominatedPods. A pod has to fit on a node beside
// those that were promised room there and go before it, and it has to fit there without them, for
// nothing is there yet that it could build on: they may end up elsewhere. What was promised on
// other nodes does not count.
//
// Pure functions.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "scheduling/framework.h"

namespace nos::scheduling {

// By node: those that the pod in question has to reckon with.
using Promises =
    std::map<std::string, std::vector<std::shared_ptr<const cluster::Pod>>, std::less<>>;

// A cluster, and one pod's way through the pre-filters there.
struct Picture {
  cluster::ClusterSnapshot snapshot;
  Cycle cycle;
};

// With the others on this node. `cycle`: of the pod in the snapshot as it is given.
Picture WithOthers(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                   const Cycle& cycle, const cluster::Pod& pod, Pods others,
                   const cluster::NodeInfo& node);

// What the node says to the pod: with those that were promised room there, then without.
Verdict FilterBeside(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                     const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node,
                     const Promises& promises);

}  // namespace nos::scheduling
