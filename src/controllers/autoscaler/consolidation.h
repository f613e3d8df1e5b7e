// Drains nodes that have been removable for long enough: their pods have room on other nodes, or
// none run there (planning/shrink.h).
//
//   Consolidation consolidation(config, frameworks, relocations, ids, events, schedule);
//   if (all_served) consolidation.Drain(cycle, cluster, snapshot, used);
//   else consolidation.Restart();   // pending pods could use an idle node
//
// Stabilisation: a node is drained once it has been removable without a break for
// config.shrink_after, and no pool has grown during this time. Owned by one thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/decision_schedule.h"
#include "controllers/autoscaler/pools/observed.h"
#include "controllers/autoscaler/relocation_ids.h"
#include "controllers/autoscaler/scaling_events.h"
#include "planning/shrink.h"

namespace nos::controllers {

class Consolidation {
 public:
  // All must outlive this.
  Consolidation(const AutoscalerConfig& config, const scheduling::FrameworkChoice& frameworks,
                Relocations& relocations, RelocationIds& ids, ScalingEvents& events,
                DecisionSchedule& schedule)
      : config_(config),
        frameworks_(frameworks),
        relocations_(relocations),
        ids_(ids),
        events_(events),
        schedule_(schedule) {}

  // The stabilisation of all nodes starts over.
  void Restart() { removable_since_.clear(); }
  // Starts draining the nodes that are due, at most config.max_concurrent_drains at a time. `used`
  // are nodes that pending pods will use. Does nothing unless config.shrink.
  void Drain(const ScalingCycle& cycle, const ObservedCluster& cluster,
             cluster::ClusterSnapshot snapshot, const NodeNames& used);

 private:
  bool IsRemovable(const ObservedCluster& cluster, const cluster::Node& node,
                   const NodeNames& used) const;
  void UpdateRemovable(const planning::ShrinkPlan& plan, Time now);
  Time DueOf(const ObservedCluster& cluster, const std::string& node) const;
  void StartDraining(const ScalingCycle& cycle, const std::string& pool,
                     const planning::EmptiedNode& node);

  const AutoscalerConfig& config_;
  const scheduling::FrameworkChoice& frameworks_;
  Relocations& relocations_;
  RelocationIds& ids_;
  ScalingEvents& events_;
  DecisionSchedule& schedule_;
  std::map<std::string, Time> removable_since_;  // by node
};

}  // namespace nos::controllers
