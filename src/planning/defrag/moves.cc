#include "planning/moves.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "planning/defrag/move_search.h"
#include "planning/defrag/reschedule_targets.h"
#include "planning/explanation/explain.h"
#include "planning/planner.h"
#include "planning/translation/live_filters.h"
#include "planning/translation/pod_classes.h"
#include "scheduling/pod_state.h"
#include "scheduling/reasons.h"

namespace nos::planning {
namespace {

using PodPtr = std::shared_ptr<const cluster::Pod>;

constexpr int kMaxPods = 200;  // pending pods evaluated per plan

class Mover {
 public:
  Mover(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
        const scheduling::FrameworkChoice& frameworks, const PlanOptions& plan,
        const MoveOptions& options)
      : pods_(unplaced),
        frameworks_(frameworks),
        options_(options),
        out_of_time_(options.out_of_time ? options.out_of_time
                     : plan.out_of_time  ? plan.out_of_time
                                         : [] { return false; }),
        live_(snapshot, unplaced, frameworks),
        groups_(GroupPods(unplaced, frameworks, live_, plan)),
        world_{snapshot,
               EvictionBudgets(snapshot),
               std::make_shared<QuotaStanding>(snapshot, frameworks),
               {},
               {},
               {},
               {}},
        failed_(groups_.all.size()) {}

  MovePlan Run() {
    // 1. Pods that are not planned for.
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (groups_.group_of[i] < 0)
        Leave(static_cast<int>(i), NotPlanned(*pods_[i], groups_.gang_of[i]).reasons.front());
    }
    // 2. The others by level; within a level the pods that gangs lack come first. A gang is handled
    //    as a whole when its first group is reached.
    std::vector<int> order(groups_.all.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](int g) {
      return std::pair(groups_.all[g].level, !IsNeeded(groups_.all[g]));
    });
    std::vector<bool> gang_done(groups_.gangs.size());
    for (const int g : order) {
      const PodGroup& group = groups_.all[g];
      if (!IsNeeded(group)) {
        for (const int pod : group.members) ServeOne(pod);
      } else if (!gang_done[group.gang]) {
        gang_done[group.gang] = true;
        ServeGang(group.gang, order);
      }
    }
    MovePlan plan;
    plan.pod_moves = std::move(world_.pod_moves);
    plan.others = std::move(others_);
    plan.others.insert(plan.others.end(), world_.in_room.begin(), world_.in_room.end());
    std::ranges::sort(plan.others, {}, &NoMoveFound::pod);
    plan.after = std::move(world_.after);
    return plan;
  }

 private:
  // True for a group of gang members that the gang lacks.
  static bool IsNeeded(const PodGroup& group) { return group.gang >= 0 && !group.extra; }

  void Leave(int pod, Reason reason) { others_.push_back({pod, std::move(reason)}); }

  // nullopt if the pod may be evaluated.
  std::optional<Reason> WhyNotLookedAt() {
    if (static_cast<int>(world_.pod_moves.size()) >= options_.max_pods_served) {
      return Reason{scheduling::codes::kSearchEnded, "enough pods are helped by moves before it",
                    0};
    }
    if (looked_at_ >= kMaxPods || out_of_time_()) {
      return Reason{scheduling::codes::kSearchEnded, "there was no time to look for moves for it",
                    0};
    }
    return std::nullopt;
  }

  void ServeOne(int pod) {
    if (std::optional<Reason> why = WhyNotLookedAt()) return Leave(pod, *std::move(why));
    std::optional<Failure>& failed = failed_[groups_.group_of[pod]];
    if (failed && failed->version == version_) return Leave(pod, failed->reason);
    MoveWorld world = world_;
    if (std::optional<Reason> why = Serve(pod, options_.max_moves, world)) {
      failed = {version_, *why};
      return Leave(pod, *std::move(why));
    }
    Commit(std::move(world));
  }

  // Serves all pods that the gang lacks, with at most as many moves as one pod may cost; pods in
  // their order.
  void ServeGang(int number, const std::vector<int>& order) {
    const Gang& gang = *groups_.gangs[number];
    std::vector<int> members;
    for (const int g : order) {
      const PodGroup& group = groups_.all[g];
      if (group.gang != number || !IsNeeded(group)) continue;
      members.insert(members.end(), group.members.begin(), group.members.end());
    }
    const size_t lacking = static_cast<size_t>(gang.Lacking());
    MoveWorld world = world_;
    std::vector<int> waiting;
    size_t served = 0;
    std::optional<Reason> why = WhyNotLookedAt();
    for (const int pod : members) {
      const bool hopeless = waiting.size() + lacking > members.size();
      if (why || served == lacking || hopeless || looked_at_ >= kMaxPods) {
        waiting.push_back(pod);
        continue;
      }
      const size_t before = MovesIn(world);
      const int left = options_.max_moves - static_cast<int>(before - MovesIn(world_));
      if (Serve(pod, left, world)) {
        waiting.push_back(pod);
      } else {
        ++served;
      }
    }
    if (served == lacking) {
      Commit(std::move(world));
      for (const int pod : waiting) ServeOne(pod);
      return;
    }
    if (!why) {
      why = scheduling::GangNotWhole(gang.name, static_cast<size_t>(gang.placed) + served,
                                     static_cast<size_t>(gang.least));
      why->message += fmt::format("; moves: {} at most", options_.max_moves);
    }
    for (const int pod : members) Leave(pod, *why);
  }

  static size_t MovesIn(const MoveWorld& world) {
    size_t moves = 0;
    for (const PodMoves& pod_moves : world.pod_moves) moves += pod_moves.moves.size();
    return moves;
  }

  // nullopt if the pod has a place in `world` afterwards.
  std::optional<Reason> Serve(int pod, int max_moves, MoveWorld& world) {
    ++looked_at_;
    if (IsServedAsItIs(pod, world)) return std::nullopt;
    const PendingPod pending(pods_[pod], frameworks_, live_.Has(*pods_[pod]), out_of_time_);
    return PlanMovesFor(pod, pending, max_moves, options_, world);
  }

  // True if the pod fits because of what earlier moves have freed.
  bool IsServedAsItIs(int pod, MoveWorld& world) const {
    const PodPtr waiting[] = {pods_[pod]};
    PlanOptions options;
    options.out_of_time = out_of_time_;
    const Plan plan =
        MakePlan(TargetsIn(world.after, waiting, frameworks_), waiting, frameworks_, options);
    const PodOutcome& outcome = plan.pods[0];
    if (!outcome.placed) return false;
    if (!world.after.Bind(Placed(*pods_[pod], outcome.node, outcome.devices), outcome.node).ok()) {
      return false;
    }
    world.settled.insert(pods_[pod]->Key());
    world.in_room.push_back(
        {pod,
         {kCapacityAvailable,
          fmt::format("fits on node {}{}", outcome.node,
                      world.pod_moves.empty() ? "" : " once the moves for other pods are made"),
          0}});
    return true;
  }

  void Commit(MoveWorld world) {
    world_ = std::move(world);
    ++version_;
    for (const PodPtr& pod : world_.moving) {
      if (options_.take) options_.take(*pod);
    }
    world_.moving.clear();
  }

  struct Failure {
    int version = 0;
    Reason reason;
  };

  const Pods pods_;
  const scheduling::FrameworkChoice& frameworks_;
  const MoveOptions& options_;
  const std::function<bool()> out_of_time_;
  const LivePods live_;
  const PodGroups groups_;
  MoveWorld world_;
  std::vector<std::optional<Failure>> failed_;  // by group, because its pods are equal
  std::vector<NoMoveFound> others_;
  int version_ = 0;  // of world_
  int looked_at_ = 0;
};

}  // namespace

MovePlan PlanMoves(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                   const scheduling::FrameworkChoice& frameworks, const PlanOptions& plan,
                   const MoveOptions& options) {
  return Mover(snapshot, unplaced, frameworks, plan, options).Run();
}

}  // namespace nos::planning
