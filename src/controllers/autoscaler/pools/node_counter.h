// Counts the nodes of each pool by state, and records node templates from them.
//
//   NodeCounter counter(config, catalogue, schedule);
//   counter.RecordTemplates(cycle, cluster);   // pools whose spec describes no node
//   counter.Count(cycle, cluster);             // fills pool.nodes and cluster.starting
//
// A node is starting as long as it differs from its pool's description and is young; going, once
// its pool was asked to remove it. Templates come first, because a node is compared with its
// pool's template. Owned by one thread.
#pragma once

#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/decision_schedule.h"
#include "controllers/autoscaler/pools/observed.h"

namespace nos::controllers {

class NodeCounter {
 public:
  // All must outlive this.
  NodeCounter(const AutoscalerConfig& config, const gpu::Catalogue& catalogue,
              DecisionSchedule& schedule)
      : config_(config), catalogue_(catalogue), schedule_(schedule), missing_(catalogue) {}

  // Records what a spec leaves out from existing nodes, in pool.memory, and updates pool.pool.
  // REQUIRES: nodes, pools and pool_of are set.
  void RecordTemplates(const ScalingCycle& cycle, ObservedCluster& cluster);
  // The next decision is due when a starting node becomes late. REQUIRES: removals are set too.
  void Count(const ScalingCycle& cycle, ObservedCluster& cluster);

 private:
  bool IsStarting(const cluster::Node& node, const cluster::NodePool& pool,
                  const MissingRequirements& missing, Time now) const;

  const AutoscalerConfig& config_;
  const gpu::Catalogue& catalogue_;
  DecisionSchedule& schedule_;
  MissingRequirementsCache missing_;
};

}  // namespace nos::controllers
