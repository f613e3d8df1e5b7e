// Requests nodes for pending pods that neither existing nodes nor moves can serve
// (planning/growth.h).
//
//   Growth growth(config, frameworks, counts, statuses, events, conditions, schedule);
//   GrowthOutcome outcome = growth.Grow(cycle, cluster, unschedulable, options, snapshot, used);
//   if (outcome.all_served) ...   // no pending pod could use an idle node
//
// A pool with a signal is asked through its status, from which the signal follows; other pools
// through their desired count. Each pod gets a condition that says which node comes for it, or why
// none does. Owned by one thread.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/decision_schedule.h"
#include "controllers/autoscaler/pod_conditions.h"
#include "controllers/autoscaler/pools/desired_counts.h"
#include "controllers/autoscaler/pools/statuses.h"
#include "controllers/autoscaler/scaling_events.h"
#include "controllers/autoscaler/unschedulable_pods.h"
#include "planning/growth.h"

namespace nos::controllers {

struct GrowthOutcome {
  // No node is needed, and no pod is left that free capacity on existing nodes could help.
  bool all_served = false;
  std::vector<planning::LeftOut> left_out;  // indices into the unschedulable pods
};

class Growth {
 public:
  // All must outlive this.
  Growth(const AutoscalerConfig& config, const scheduling::FrameworkChoice& frameworks,
         DesiredCounts& counts, PoolStatuses& statuses, ScalingEvents& events,
         PodConditions& conditions, DecisionSchedule& schedule)
      : config_(config),
        frameworks_(frameworks),
        counts_(counts),
        statuses_(statuses),
        events_(events),
        conditions_(conditions),
        schedule_(schedule) {}

  // Adds to `used` the existing nodes on which the plan places pods.
  GrowthOutcome Grow(const ScalingCycle& cycle, ObservedCluster& cluster,
                     const UnschedulablePods& unschedulable, planning::PlanOptions options,
                     const cluster::ClusterSnapshot& snapshot, NodeNames& used);

 private:
  bool Request(const ScalingCycle& cycle, ObservedPool& pool, int count,
               const std::vector<std::string>& pods);
  void RequestBySignal(const ScalingCycle& cycle, ObservedPool& pool, int used, int count,
                       const std::vector<std::string>& pods);
  void SetConditions(const ScalingCycle& cycle, const ObservedCluster& cluster,
                     const UnschedulablePods& unschedulable, const planning::GrowthPlan& plan,
                     const std::set<int>& failed);
  // Adds the Event, and a decision with its message.
  void Report(kube::EventNote event, const std::string& pool, int count,
              const std::vector<std::string>& pods, Time now);

  const AutoscalerConfig& config_;
  const scheduling::FrameworkChoice& frameworks_;
  DesiredCounts& counts_;
  PoolStatuses& statuses_;
  ScalingEvents& events_;
  PodConditions& conditions_;
  DecisionSchedule& schedule_;
};

}  // namespace nos::controllers
