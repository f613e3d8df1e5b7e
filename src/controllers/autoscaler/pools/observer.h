// Observes the NodePools: reads how many nodes each one wants, counts those that exist, derives the
// pool's state (pools/state.h) and writes its status.
//
//   PoolObserver observer(config, catalogue, counts, statuses, events, schedule);
//   ObservedCluster cluster{nodes, removals};
//   const Status error = observer.Observe(cycle, context, cluster);
//
// A pool that does not deliver its nodes in time is closed, and its desired count is reduced to the
// nodes that exist. Owned by one thread.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "controllers/autoscaler/pools/desired_counts.h"
#include "controllers/autoscaler/pools/node_counter.h"
#include "controllers/autoscaler/pools/statuses.h"
#include "controllers/autoscaler/pools/unreadable.h"

namespace nos::controllers {

class PoolObserver {
 public:
  // All must outlive this.
  PoolObserver(const AutoscalerConfig& config, const gpu::Catalogue& catalogue,
               DesiredCounts& counts, PoolStatuses& statuses, ScalingEvents& events,
               DecisionSchedule& schedule);

  // Adds the pools and the starting nodes to `cluster`, which holds the nodes and their removals.
  // The pools stay valid until the next call. Error: of the last write that failed; the other
  // pools are complete.
  Status Observe(const ScalingCycle& cycle, const cluster::ClusterContext& context,
                 ObservedCluster& cluster);

 private:
  void ListPools(const ScalingCycle& cycle, const cluster::ClusterContext& context,
                 ObservedCluster& cluster);
  PoolSeen Summarise(const ObservedPool& pool) const;
  Status UpdateState(const ScalingCycle& cycle, ObservedPool& pool);

  const AutoscalerConfig& config_;
  const gpu::Catalogue& catalogue_;
  DesiredCounts& counts_;
  PoolStatuses& statuses_;
  ScalingEvents& events_;
  UnreadablePools unreadable_;
  NodeCounter counter_;
  std::map<std::string, PoolMemory> memory_;  // by pool
};

// Sets the gauges of the pools: nodes by state, price per hour.
void SetPoolMetrics(const ObservedCluster& cluster, Metrics& metrics);

}  // namespace nos::controllers
