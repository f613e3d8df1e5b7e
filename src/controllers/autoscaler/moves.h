// Moves running pods to free capacity for pending pods, within budgets (planning/moves.h).
//
//   PodMover moves(config, frameworks, relocations, ids, pending, events, conditions, schedule);
//   moves.Plan(cycle, cluster, demand, options, {unschedulable, snapshot, used});
//   // `unschedulable` holds the pods that need new nodes
//
// Moves start once the pending pod has waited config.move_after. A pod whose moves are planned and
// cannot start yet is held back, at most as long as a move may take; after that it gets a new node.
// Owned by one thread.
#pragma once

#include <map>
#include <set>
#include <string>

#include "cluster/snapshot.h"
#include "controllers/autoscaler.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/decision_schedule.h"
#include "controllers/autoscaler/move_budget.h"
#include "controllers/autoscaler/pending_pods.h"
#include "controllers/autoscaler/pod_conditions.h"
#include "controllers/autoscaler/relocation_ids.h"
#include "controllers/autoscaler/scaling_events.h"
#include "controllers/autoscaler/unschedulable_pods.h"
#include "planning/moves.h"

namespace nos::controllers {

// State that a plan of moves updates.
struct MoveEffects {
  UnschedulablePods& unschedulable;    // loses the pods that moves will serve
  cluster::ClusterSnapshot& snapshot;  // becomes the state after the moves
  NodeNames& used;                     // gains the nodes of the plan
};

class PodMover {
 public:
  // All must outlive this.
  PodMover(const AutoscalerConfig& config, const scheduling::FrameworkChoice& frameworks,
           Relocations& relocations, RelocationIds& ids, PendingPods& pending,
           ScalingEvents& events, PodConditions& conditions, DecisionSchedule& schedule)
      : config_(config),
        frameworks_(frameworks),
        relocations_(relocations),
        ids_(ids),
        pending_(pending),
        events_(events),
        conditions_(conditions),
        schedule_(schedule),
        budget_(config.max_moves_per_hour, config.max_moves_per_namespace) {}

  // Plans moves and starts those that are due. Does nothing unless config.moves.
  void Plan(const ScalingCycle& cycle, const ObservedCluster& cluster, const PendingDemand& demand,
            planning::PlanOptions options, MoveEffects effects);

 private:
  bool Awaits(const cluster::Pod& pod, Time now);
  UnschedulablePods HoldBack(const UnschedulablePods& unschedulable, Time now);
  planning::MovePlan FindMoves(const PendingDemand& demand, planning::PlanOptions options,
                               const MoveEffects& effects) const;
  std::set<int> StartPlannedMoves(const ScalingCycle& cycle, const UnschedulablePods& unschedulable,
                                  const planning::MovePlan& plan);
  bool Start(const ScalingCycle& cycle, const cluster::Pod& pod,
             const planning::PodMoves& pod_moves);

  const AutoscalerConfig& config_;
  const scheduling::FrameworkChoice& frameworks_;
  Relocations& relocations_;
  RelocationIds& ids_;
  PendingPods& pending_;
  ScalingEvents& events_;
  PodConditions& conditions_;
  DecisionSchedule& schedule_;
  MoveBudget budget_;
  // By key and UID: the time since moves are planned and not started.
  std::map<std::string, Time> planned_;
};

}  // namespace nos::controllers
