#include "controllers/autoscaler/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"

namespace nos::controllers {
namespace {

std::string IdOf(const cluster::Pod& pod) { return pod.Key() + "/" + pod.meta.uid; }

}  // namespace

void PodMover::Plan(const ScalingCycle& cycle, const ObservedCluster& cluster,
                    const PendingDemand& demand, planning::PlanOptions options,
                    MoveEffects effects) {
  UnschedulablePods& unschedulable = effects.unschedulable;
  std::set<std::string, std::less<>> waiting;
  for (const auto& pod : unschedulable.pods) waiting.insert(IdOf(*pod));
  std::erase_if(planned_, [&](const auto& item) { return !waiting.contains(item.first); });
  if (!config_.moves || unschedulable.pods.empty()) return;
  // 1. Pending placeholders are about to use capacity that no other plan may count on.
  if (demand.placeholders_wait) {
    unschedulable = HoldBack(unschedulable, cycle.now);
    return;
  }
  // 2. Plan, and start what is due.
  budget_.Observe(cluster.nodes, cycle.now);
  planning::MovePlan plan = FindMoves(demand, std::move(options), effects);
  const std::set<int> served_pods = StartPlannedMoves(cycle, unschedulable, plan);
  if (!served_pods.empty()) {
    unschedulable = unschedulable.Without(served_pods);
    effects.snapshot = std::move(plan.after);
    for (const planning::PodMoves& pod_moves : plan.pod_moves) {
      effects.used.insert(pod_moves.node);
      for (const planning::Move& move : pod_moves.moves) effects.used.insert(move.to);
    }
  }
  // 3. Pods with planned moves are next once the current placeholders have been used.
  if (!demand.held.empty()) unschedulable = HoldBack(unschedulable, cycle.now);
}

planning::MovePlan PodMover::FindMoves(const PendingDemand& demand, planning::PlanOptions options,
                                       const MoveEffects& effects) const {
  MoveAllowance allowance = budget_.Allowance();
  planning::MoveOptions moves;
  moves.rules = config_.relocations.rules;
  moves.max_moves = config_.max_moves_per_pod;
  moves.out_of_time = options.out_of_time;
  moves.may_move = [&](const cluster::Pod& pod) {
    // A node that pods are moved away from is cordoned, so a placeholder's pod could not start
    // there.
    return !demand.held.contains(pod.node_name) && !demand.busy.contains(pod.Key()) &&
           allowance.Allows({{pod.meta.ns, 1}});
  };
  using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;
  moves.may_move_together = [&](Pods pods) {
    std::map<std::string, int> more;
    for (const auto& pod : pods) ++more[pod->meta.ns];
    return allowance.Allows(more);
  };
  moves.take = [&](const cluster::Pod& pod) { allowance.Take(pod.meta.ns); };
  options.gangs = effects.unschedulable.gangs;
  return planning::PlanMoves(effects.snapshot, effects.unschedulable.pods, frameworks_, options,
                             moves);
}

// True if a pod whose planned moves cannot start yet should wait for them. It waits at most
// `hold_timeout`, the time that a move may take; after that it gets a new node.
bool PodMover::Awaits(const cluster::Pod& pod, Time now) {
  const Time since = planned_.try_emplace(IdOf(pod), now).first->second;
  const Time until = since + config_.relocations.hold_timeout;
  if (now < until) schedule_.DecideBy(until);
  return now < until;
}

// Leaves out pods with planned moves: while placeholders are pending no new moves are planned, and
// earlier plans stay valid.
UnschedulablePods PodMover::HoldBack(const UnschedulablePods& unschedulable, Time now) {
  std::set<int> wait;
  for (size_t i = 0; i < unschedulable.pods.size(); ++i) {
    const cluster::Pod& pod = *unschedulable.pods[i];
    if (planned_.contains(IdOf(pod)) && Awaits(pod, now)) wait.insert(static_cast<int>(i));
  }
  return unschedulable.Without(wait);
}

// Returns the indices of the pods that the moves serve, now or later.
std::set<int> PodMover::StartPlannedMoves(const ScalingCycle& cycle,
                                          const UnschedulablePods& unschedulable,
                                          const planning::MovePlan& plan) {
  std::set<int> served_pods;
  bool failed = false;
  NodeNames closed, targets;
  for (const planning::PodMoves& pod_moves : plan.pod_moves) {
    const cluster::Pod& pod = *unschedulable.pods[static_cast<size_t>(pod_moves.pod)];
    // Pods cannot get a place on a node that other pods are moved away from.
    const bool crosses = std::ranges::any_of(pod_moves.moves, [&](const planning::Move& move) {
      return closed.contains(move.to) || closed.contains(move.from) || targets.contains(move.from);
    });
    if (crosses) {
      // The pod gets its turn after the moves that conflict with its own.
      if (!failed && Awaits(pod, cycle.now)) served_pods.insert(pod_moves.pod);
      continue;
    }
    for (const planning::Move& move : pod_moves.moves) {
      closed.insert(move.from);
      targets.insert(move.to);
    }
    const Time due = pending_.WaitingSince(pod, cycle.now) + config_.move_after;
    if (cycle.now < due) {
      schedule_.DecideBy(due);
      (void)Awaits(pod, cycle.now);
    } else if (!Start(cycle, pod, pod_moves)) {
      failed = true;
      continue;
    }
    served_pods.insert(pod_moves.pod);
  }
  // Capacity that the moves free can also serve other pods, but only if all moves of the plan
  // started.
  const bool all = served_pods.size() == plan.pod_moves.size();
  for (const planning::NoMoveFound& other : plan.others) {
    if (!all || other.reason.code != planning::kCapacityAvailable) continue;
    (void)Awaits(*unschedulable.pods[static_cast<size_t>(other.pod)], cycle.now);
    served_pods.insert(other.pod);
  }
  return served_pods;
}

bool PodMover::Start(const ScalingCycle& cycle, const cluster::Pod& pod,
                     const planning::PodMoves& pod_moves) {
  const Relocation relocation{ids_.Next(cycle.now), "", "", pod.Key(), pod_moves.moves};
  const Status started = relocations_.Start(relocation, cycle.view, cycle.client, cycle.now);
  std::vector<std::string> pods;
  for (const planning::Move& move : pod_moves.moves) {
    budget_.Add(relocation.id, move.from, move.pod->meta.ns, cycle.now);
    pods.push_back(move.pod->Key());
  }
  if (!started.ok()) {  // Relocations::Step rolls back or completes the part that was written
    Log(LogLevel::kWarn, "failed to start moves for pending Pod",
        {{"pod", pod.Key()}, {"error", started.ToString()}});
    return false;
  }
  conditions_.Set(pod, "True", kRelocatingPods, kRelocatingText, cycle.now);
  events_.Record({.action = "move",
                  .node = pod_moves.node,
                  .count = static_cast<int>(pods.size()),
                  .pods = pods,
                  .message = fmt::format("Moving Pods {} to make room for Pod {} on Node {}",
                                         Join(pods, ", "), pod.Key(), pod_moves.node)},
                 cycle.now);
  return true;
}

}  // namespace nos::controllers
