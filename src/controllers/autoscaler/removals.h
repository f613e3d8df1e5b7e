// Removes empty nodes: each pool is asked exactly once for each node, whatever fails on the way.
//
//   NodeRemovals removals(config, relocations, scaling, counts, events);
//   cluster.removals = removals.Observe(cluster.nodes, now);
//   removals.ReportRemoved(view);
//   if (removals.Continue(cycle, cluster)) ...    // counts have changed: observe again
//   removals.Keep(cycle, pool, node, "pending pods fit on it");
//
// The node is marked with the count that its pool should want, then the pool is asked, then the
// node is marked as certainly requested (kRemovalRequested). After a crash in between, the mark and
// the pool's wanted count show whether the pool has been asked. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/pools/desired_counts.h"
#include "controllers/autoscaler/pools/observed.h"
#include "controllers/autoscaler/scaling_events.h"

namespace nos::controllers {

class NodeRemovals {
 public:
  using NodePtr = std::shared_ptr<const cluster::Node>;
  using PoolPtr = std::shared_ptr<const cluster::NodePool>;

  // All must outlive this.
  NodeRemovals(const AutoscalerConfig& config, Relocations& relocations, PoolScaling& scaling,
               DesiredCounts& counts, ScalingEvents& events)
      : config_(config),
        relocations_(relocations),
        scaling_(scaling),
        counts_(counts),
        events_(events) {}

  // The removals in progress, by node: marks in the cache, and marks that this wrote and the cache
  // does not show yet.
  std::map<std::string, Removal> Observe(const std::vector<NodePtr>& nodes, Time now);
  // Publishes an Event for each node that is gone.
  void ReportRemoved(const reconcile::Listers& view);
  // Advances each removal of an empty node. Returns true if anything was changed.
  bool Continue(const ScalingCycle& cycle, ObservedCluster& cluster);
  // Cancels the removal of the node. `pool` may be null. Error: kConflict: the node has changed,
  // and the cache will show it; others as reported by the API server.
  Status Keep(const ScalingCycle& cycle, const PoolPtr& pool, const NodePtr& node,
              const std::string& why);

 private:
  std::optional<Removal> MarkOf(const cluster::Node& node, Time now);
  bool ContinueOne(const ScalingCycle& cycle, ObservedPool* pool, const NodePtr& node,
                   const Removal& removal);
  bool Request(const ScalingCycle& cycle, ObservedPool& pool, const NodePtr& node,
               const Removal& removal);
  std::string WhyNotNow(const ScalingCycle& cycle, const ObservedPool& pool,
                        const cluster::Node& node) const;
  bool EvictFinishedPods(const ScalingCycle& cycle, const cluster::NodePool& pool,
                         const cluster::Node& node) const;
  void NameToWebhook(const ScalingCycle& cycle, const cluster::NodePool& pool,
                     const PoolScale& scale, const std::string& node);
  bool Confirm(const ScalingCycle& cycle, const cluster::NodePool& pool, const NodePtr& node);
  bool HandleOverdue(const ScalingCycle& cycle, ObservedPool& pool, const NodePtr& node);
  bool Mark(const ScalingCycle& cycle, const NodePtr& node, int32_t wanted);

  const AutoscalerConfig& config_;
  Relocations& relocations_;
  PoolScaling& scaling_;
  DesiredCounts& counts_;
  ScalingEvents& events_;
  // Removal marks that we wrote and the cache may not show yet, by node UID. The value is the node
  // count that its pool keeps; no value: the mark was removed.
  std::map<std::string, std::optional<int32_t>> marked_;
  // By node: the pool that was asked to remove it, as it was then.
  std::map<std::string, PoolPtr> leaving_;
  std::set<std::string> reported_late_;  // UIDs of nodes whose overdue removal was reported
};

}  // namespace nos::controllers
