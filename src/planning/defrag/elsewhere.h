// Places on other nodes for pods that run.
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

// As it will wait once it has been evicted.
std::shared_ptr<const cluster::Pod> Anew(const cluster::Pod& pod);

// As it runs there then. Error: kNotFound: no such node.
Status BindMoved(const Move& move, cluster::ClusterSnapshot& to);

// How much of the scarcest of cpu, memory and GPUs these pods use: 0 to 1.
double UseOf(const cluster::NodeInfo& node,
             std::span<const std::shared_ptr<const cluster::Pod>> pods);

// The nodes on which places are looked for: where pods are asked for what runs elsewhere, all; else
// those in most use that might take one of them, 200 at most.
cluster::ClusterSnapshot TargetsIn(const cluster::ClusterSnapshot& snapshot,
                                   std::span<const std::shared_ptr<const cluster::Pod>> pods,
                                   const scheduling::FrameworkChoice& frameworks);

}  // namespace nos::planning
