// Moves running pods to free capacity for pending pods, within budgets.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/autoscaler/internal.h"

namespace nos::controllers {

// Merges the moves of this process with those that earlier replicas wrote on nodes (kMovedFrom).
void Autoscaler::Impl::CountMoved(const Look& look) {
  std::erase_if(moved_, [&](const auto& one) { return look.now - one.second.at >= kMovedCounts; });
  for (const Node& node : look.nodes) {
    MovedById all = MovedFrom(*node, look.now);
    for (auto& [id, moved] : all) {
      moved_.try_emplace(std::pair(id, node->meta.name), std::move(moved));
    }
  }
}

// True if a pod whose planned moves cannot start yet should wait for them. It waits at most
// `hold_deadline`, the time that a move may take; after that it gets a new node.
bool Autoscaler::Impl::AwaitsMoves(const cluster::Pod& pod, Time now) {
  const Time since = moves_planned_.try_emplace(pod.Key() + "/" + pod.meta.uid, now).first->second;
  const Time until = since + config_.relocations.hold_deadline;
  if (now < until) DecideBy(until);
  return now < until;
}

// Holds back pods with planned moves: while placeholders are pending no new moves are planned, and
// earlier plans stay valid.
Unserved Autoscaler::Impl::WithoutThoseWithMoves(const Look& look, const Unserved& unserved) {
  std::set<int> wait;
  for (size_t i = 0; i < unserved.pods.size(); ++i) {
    const cluster::Pod& pod = *unserved.pods[i];
    const bool planned = moves_planned_.contains(pod.Key() + "/" + pod.meta.uid);
    if (planned && AwaitsMoves(pod, look.now)) wait.insert(static_cast<int>(i));
  }
  return Without(unserved, wait);
}

// Returns the indices of the pods that the moves serve, now or later.
std::set<int> Autoscaler::Impl::StartReliefs(Look& look, const Unserved& unserved,
                                             const planning::MovePlan& plan) {
  std::set<int> relieved;
  bool failed = false;
  std::set<std::string, std::less<>> closed, targets;  // nodes
  for (const planning::PodMoves& relief : plan.reliefs) {
    const cluster::Pod& pod = *unserved.pods[static_cast<size_t>(relief.pod)];
    // Pods cannot get a place on a node that other pods are moved away from.
    const bool crosses = std::ranges::any_of(relief.moves, [&](const planning::Move& move) {
      return closed.contains(move.to) || closed.contains(move.from) || targets.contains(move.from);
    });
    if (crosses) {
      // It is next after the moves that it conflicts with.
      if (!failed && AwaitsMoves(pod, look.now)) relieved.insert(relief.pod);
      continue;
    }
    for (const planning::Move& move : relief.moves) {
      closed.insert(move.from);
      targets.insert(move.to);
    }
    const Time due = WaitingSince(pod, look.now) + config_.move_after;
    if (look.now < due) {
      DecideBy(due);
      (void)AwaitsMoves(pod, look.now);
    } else if (!StartMoves(look, pod, relief)) {
      failed = true;
      continue;
    }
    relieved.insert(relief.pod);
  }
  // Capacity that the moves free can also serve other pods, but only if all moves of the plan
  // started.
  const bool all = relieved.size() == plan.reliefs.size();
  for (const planning::NoMoveFound& other : plan.others) {
    if (!all || other.reason.code != "HasRoom") continue;
    (void)AwaitsMoves(*unserved.pods[static_cast<size_t>(other.pod)], look.now);
    relieved.insert(other.pod);
  }
  return relieved;
}

// Removes from `unserved` the pods that moves will serve, including those that have not waited
// `move_after` yet. They need no new nodes.
void Autoscaler::Impl::PlanMovesFor(Look& look, const Demand& demand, planning::PlanOptions options,
                                    Unserved& unserved, cluster::ClusterSnapshot& picture) {
  std::set<std::string, std::less<>> waiting;
  for (const Pod& pod : unserved.pods) waiting.insert(pod->Key() + "/" + pod->meta.uid);
  std::erase_if(moves_planned_, [&](const auto& item) { return !waiting.contains(item.first); });
  if (!config_.moves || unserved.pods.empty()) return;
  // Pending placeholders are about to use capacity that no other plan may count on.
  if (demand.placeholders_wait) {
    unserved = WithoutThoseWithMoves(look, unserved);
    return;
  }
  planning::MoveOptions moves;
  moves.rules = config_.relocations.rules;
  moves.most_moves = config_.most_moves;
  moves.out_of_time = options.out_of_time;
  CountMoved(look);
  int total = 0;
  std::map<std::string, int> by_namespace;
  for (const auto& [where, moved] : moved_) {
    for (const auto& [ns, count] : moved.pods) {
      total += count;
      by_namespace[ns] += count;
    }
  }
  moves.may_move = [&](const cluster::Pod& pod) {
    // A node that pods are moved away from is cordoned, so a placeholder's pod could not start
    // there.
    return !demand.held.contains(pod.node_name) && total < config_.moves_per_hour &&
           !demand.busy.contains(pod.Key()) &&
           by_namespace[pod.meta.ns] < config_.moves_per_namespace;
  };
  using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;
  moves.may_move_together = [&](Pods pods) {
    std::map<std::string, int> more;
    for (const Pod& pod : pods) ++more[pod->meta.ns];
    return total + static_cast<int>(pods.size()) <= config_.moves_per_hour &&
           std::ranges::all_of(more, [&](const auto& of) {
             return by_namespace[of.first] + of.second <= config_.moves_per_namespace;
           });
  };
  moves.take = [&](const cluster::Pod& pod) {
    ++total;
    ++by_namespace[pod.meta.ns];
  };
  options.gangs = unserved.gangs;
  planning::MovePlan plan =
      planning::PlanMoves(picture, unserved.pods, frameworks_, options, moves);
  const std::set<int> relieved = StartReliefs(look, unserved, plan);
  if (!relieved.empty()) {
    unserved = Without(unserved, relieved);
    picture = std::move(plan.after);
    for (const planning::PodMoves& relief : plan.reliefs) {
      look.filled.insert(relief.node);
      for (const planning::Move& move : relief.moves) look.filled.insert(move.to);
    }
  }
  // Pods with planned moves are next once the current placeholders have been used.
  if (!demand.held.empty()) unserved = WithoutThoseWithMoves(look, unserved);
}

bool Autoscaler::Impl::StartMoves(Look& look, const cluster::Pod& pod,
                                  const planning::PodMoves& relief) {
  const auto stamp = static_cast<uint64_t>(look.now.time_since_epoch().count());
  const Relocation relocation{Relocations::NewId(stamp + ++relocations_made_), "", "", pod.Key(),
                              relief.moves};
  const Status started = relocations_.Start(relocation, look.view, look.client, look.now);
  std::vector<std::string> pods;
  for (const planning::Move& move : relief.moves) {
    Moved& moved = moved_[{relocation.id, move.from}];
    moved.at = look.now;
    ++moved.pods[move.pod->meta.ns];
    pods.push_back(move.pod->Key());
  }
  if (!started.ok()) {  // Relocations::Step rolls back or completes the part that was written
    Log(LogLevel::kWarn, "failed to start moves for pending Pod",
        {{"pod", pod.Key()}, {"error", started.ToString()}});
    return false;
  }
  Judge(pod, {kScalingCondition, "True", "Moving", "other pods move to make room for it"},
        look.now);
  Record({.action = "move",
          .node = relief.node,
          .count = static_cast<int>(pods.size()),
          .pods = pods,
          .message = fmt::format("{} move so that {} has room on node {}", Join(pods, ", "),
                                 pod.Key(), relief.node)},
         look.now);
  return true;
}

}  // namespace nos::controllers
