// Finds places on other nodes for running pods.
//
//   const Plan plan = MakePlan(TargetsIn(snapshot, waiting, frameworks), waiting, frameworks, {});
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "cluster/snapshot.h"
#include "planning/mobility.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

// The pod in the form that its replacement will have while pending.
std::shared_ptr<const cluster::Pod> AsPending(const cluster::Pod& pod);

// Binds the moved pod to its new node. Error: kNotFound: no such node.
Status BindMoved(const Move& move, cluster::ClusterSnapshot& to);

// The share of the scarcest of cpu, memory and GPUs that these pods use: 0 to 1.
double UseOf(const cluster::NodeInfo& node,
             std::span<const std::shared_ptr<const cluster::Pod>> pods);

// The nodes to which the pods may be moved. If filters depend on other running pods, all nodes;
// otherwise at most 200: those in most use that might take one of the pods.
cluster::ClusterSnapshot TargetsIn(const cluster::ClusterSnapshot& snapshot,
                                   std::span<const std::shared_ptr<const cluster::Pod>> pods,
                                   const scheduling::FrameworkChoice& frameworks);

}  // namespace nos::planning
