// Cancels the removal of nodes that pending pods could use. A node that stays is available at once,
// a new one only in minutes.
//
//   if (CancelRemovals(cycle, cluster, unschedulable, {snapshot, frameworks, options}, relocations,
//                      removals)) ...   // plan again with these nodes
//
// A node is a candidate until its pool was asked to remove it.
#pragma once

#include "cluster/snapshot.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/pools/observed.h"
#include "controllers/autoscaler/removals.h"
#include "controllers/autoscaler/unschedulable_pods.h"

namespace nos::controllers {

struct CancellationPlan {
  const cluster::ClusterSnapshot& snapshot;  // with leaving nodes, cordoned
  const scheduling::FrameworkChoice& frameworks;
  planning::PlanOptions options;
};

// Returns true if a node stays. Failed writes are logged and decided again.
bool CancelRemovals(const ScalingCycle& cycle, const ObservedCluster& cluster,
                    const UnschedulablePods& unschedulable, CancellationPlan plan,
                    Relocations& relocations, NodeRemovals& removals);

}  // namespace nos::controllers
