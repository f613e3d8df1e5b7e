// Finds the pending pods that need capacity, and those of them that existing nodes cannot run.
//
//   PendingPods pending(config, frameworks, catalogue, relocations, conditions, schedule);
//   const PendingDemand demand = pending.Collect(cycle, context);
//   ClusterSnapshot snapshot = pending.BuildSnapshot(cluster, demand.all, context);
//   const auto rest = pending.FindUnschedulable(cycle, context, demand, options, snapshot, used);
//   pending.YieldQuota(rest, left_out);   // no plan helps these: others come first next time
//
// A pod needs capacity once a scheduler has found it unschedulable for config.settle; until then
// the partitioner may still place it. Pods that their quotas refuse are left out. Owned by one
// thread.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cluster/context.h"
#include "cluster/snapshot.h"
#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/decision_schedule.h"
#include "controllers/autoscaler/pod_conditions.h"
#include "controllers/autoscaler/pools/observed.h"
#include "controllers/autoscaler/unschedulable_pods.h"
#include "controllers/pending/planned_quotas.h"
#include "controllers/planned_gangs.h"
#include "planning/growth.h"

namespace nos::controllers {

struct PendingDemand {
  std::vector<std::shared_ptr<const cluster::Pod>> all;  // all pods except demand pods
  GangedPods waiting;                                    // unschedulable for at least `settle`
  bool unsettled = false, placeholders_wait = false;
  std::set<std::string, std::less<>>
      busy;        // keys of pods that move, and of pods that others move for
  NodeNames held;  // nodes with placeholders for pods that will move there
};

class PendingPods {
 public:
  // All must outlive this.
  PendingPods(const AutoscalerConfig& config, const scheduling::FrameworkChoice& frameworks,
              const gpu::Catalogue& catalogue, const Relocations& relocations,
              PodConditions& conditions, DecisionSchedule& schedule)
      : config_(config),
        frameworks_(frameworks),
        catalogue_(catalogue),
        relocations_(relocations),
        conditions_(conditions),
        schedule_(schedule) {}

  PendingDemand Collect(const ScalingCycle& cycle, const cluster::ClusterContext& context);
  // Leaves out nodes that are still starting: they count as coming.
  cluster::ClusterSnapshot BuildSnapshot(
      const ObservedCluster& cluster, const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
      const cluster::ClusterContext& context) const;
  // Plans for the existing nodes. Pods that the plan places are bound in `snapshot`, and their
  // nodes added to `used`. The others are returned.
  UnschedulablePods FindUnschedulable(const ScalingCycle& cycle,
                                      const cluster::ClusterContext& context,
                                      const PendingDemand& demand,
                                      const planning::PlanOptions& options,
                                      cluster::ClusterSnapshot& snapshot, NodeNames& used);
  // Pods that no plan can help must not use up quota that other pods need: they are admitted last
  // from now on. `left_out` has indices into `unschedulable`.
  void YieldQuota(const UnschedulablePods& unschedulable,
                  const std::vector<planning::LeftOut>& left_out);
  // The time since which the pod is unschedulable.
  Time WaitingSince(const cluster::Pod& pod, Time now);

 private:
  const AutoscalerConfig& config_;
  const scheduling::FrameworkChoice& frameworks_;
  const gpu::Catalogue& catalogue_;
  const Relocations& relocations_;
  PodConditions& conditions_;
  DecisionSchedule& schedule_;
  std::map<std::string, Time> first_seen_;  // by key and UID
  std::set<std::string> in_vain_;           // keys of pods that no plan could help
  RefusedByQuota refused_;                  // in the last decision
};

}  // namespace nos::controllers
