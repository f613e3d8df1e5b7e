#include "planning/shrink.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "planning/defrag/reschedule_targets.h"
#include "planning/planner.h"
#include "planning/pool_nodes.h"
#include "scheduling/pod_names.h"
#include "scheduling/reasons.h"

namespace nos::planning {
namespace {

namespace codes = scheduling::codes;

using PodPtr = std::shared_ptr<const cluster::Pod>;

constexpr std::string_view kTrue = "true";

struct Candidate {
  int pool = 0;
  std::string name;
  int64_t price = 0;
  std::vector<PodPtr> pods;  // that must be moved
};

class Shrinker {
 public:
  Shrinker(const cluster::ClusterSnapshot& snapshot, const std::vector<NodePoolState>& pools,
           const scheduling::FrameworkChoice& frameworks, const ShrinkOptions& options)
      : pools_(pools),
        frameworks_(frameworks),
        options_(options),
        out_of_time_(options.out_of_time ? options.out_of_time : [] { return false; }),
        budgets_(snapshot),
        left_(pools.size()) {
    plan_.after = snapshot;
  }

  ShrinkPlan Run() {
    // Nodes with the fewest pods first, since they need the fewest moves; of these the most
    // expensive.
    std::vector<Candidate> candidates = FindCandidates();
    std::ranges::sort(candidates, {}, [](const Candidate& c) {
      return std::tuple(c.pods.size(), -c.price, c.name);
    });
    for (const Candidate& candidate : candidates) {
      if (std::optional<Reason> why = WhyNotNow(candidate)) {
        Keep(candidate.pool, candidate.name, *std::move(why));
      }
    }
    std::ranges::sort(plan_.kept, {}, &KeptNode::name);
    return std::move(plan_);
  }

 private:
  void Keep(int pool, const std::string& name, Reason reason) {
    plan_.kept.push_back({pool, name, std::move(reason)});
  }

  std::vector<Candidate> FindCandidates() {
    std::vector<Candidate> candidates;
    const cluster::ClusterSnapshot& snapshot = plan_.after;
    std::vector<std::shared_ptr<const cluster::NodePool>> own;
    own.reserve(pools_.size());
    for (const NodePoolState& now : pools_) own.push_back(now.pool);
    for (size_t n = 0; n < snapshot.size(); ++n) {
      const cluster::NodeInfo& node = snapshot.node(n);
      const int pool = PoolOf(*node.node, own);
      // A node that is being deleted no longer counts for its group.
      if (pool < 0 || node.node->meta.deleted.has_value()) continue;
      ++left_[pool];
      Candidate candidate{pool, node.node->meta.name, MilliPriceOf(*pools_[pool].pool), {}};
      if (std::optional<Reason> why = WhyStays(node, candidate.pods)) {
        Keep(pool, candidate.name, *std::move(why));
      } else {
        candidates.push_back(std::move(candidate));
      }
    }
    return candidates;
  }

  // Reasons that capacity elsewhere would not change. Appends the pods to be moved to `pods`.
  std::optional<Reason> WhyStays(const cluster::NodeInfo& node, std::vector<PodPtr>& pods) const {
    const cluster::StringMap& annotations = node.node->meta.annotations;
    for (const std::string_view key : {kScaleDownDisabled, kDoNotDisrupt}) {
      const auto found = annotations.find(key);
      if (found != annotations.end() && found->second == kTrue) {
        return Reason{codes::kNodeStays, fmt::format("its annotation {} is true", key), 0};
      }
    }
    if (options_.may_go && !options_.may_go(node)) {
      return Reason{codes::kNotNow, "it may not go yet", 0};
    }
    for (const PodPtr& pod : node.pods) {
      Mobility mobility = MobilityOf(*pod, options_.rules);
      if (mobility.kind == Mobility::kStays) {
        return Reason{codes::kPodStays,
                      fmt::format("{} {}", scheduling::PodText(pod->Key()), mobility.why), 0};
      }
      if (mobility.kind == Mobility::kMoves) pods.push_back(pod);
    }
    for (const cluster::Gpu& gpu : node.gpus.gpus) {
      for (const cluster::Instance& instance : gpu.instances) {
        if (!instance.used || !instance.pod.empty()) continue;
        return Reason{codes::kInUse,
                      fmt::format("{} of GPU {} is in use by an unknown pod",
                                  gpu.model->PlacementName(instance.placement), gpu.index),
                      0};
      }
    }
    if (const double use = UseOf(node, pods); use > options_.utilization_threshold) {
      return Reason{codes::kInUse, fmt::format("{:.0f}% of it is in use", 100 * use), 0};
    }
    return std::nullopt;
  }

  // nullopt if the node is removed.
  std::optional<Reason> WhyNotNow(const Candidate& candidate) {
    const cluster::NodePool& pool = *pools_[candidate.pool].pool;
    if (left_[candidate.pool] <= pool.min) {
      return Reason{
          codes::kAtMinimum,
          fmt::format("pool {} has its {} nodes at least (spec.min)", pool.meta.name, pool.min), 0};
    }
    if (takes_moved_.contains(candidate.name)) {
      return Reason{codes::kTakesMovedPods, "pods of another node that goes are moved here", 0};
    }
    if (static_cast<int>(plan_.nodes.size()) >= options_.max_nodes || out_of_time_()) {
      return Reason{codes::kNotLookedAt, "enough other nodes go first, or there was no time", 0};
    }
    EvictionBudgets budgets = budgets_;
    for (const PodPtr& pod : candidate.pods) {
      if (const std::string why = budgets.WhyNot(*pod); !why.empty()) {
        return Reason{codes::kBudget, fmt::format("{}: {}", scheduling::PodText(pod->Key()), why),
                      0};
      }
      budgets.Take(*pod);
    }
    if (std::optional<Reason> why = WhyNoRoom(candidate)) return why;
    budgets_ = std::move(budgets);
    --left_[candidate.pool];
    plan_.milli_price += candidate.price;
    return std::nullopt;
  }

  // Plans the moves of all pods, or returns why that is impossible.
  std::optional<Reason> WhyNoRoom(const Candidate& candidate) {
    cluster::ClusterSnapshot without = plan_.after;
    without.RemoveNode(candidate.name);
    EmptiedNode emptied{candidate.pool, candidate.name, {}};
    if (!candidate.pods.empty()) {
      if (++tries_ > options_.max_tries) {
        return Reason{codes::kNotLookedAt, "places were looked for others' pods first", 0};
      }
      std::vector<PodPtr> waiting;
      waiting.reserve(candidate.pods.size());
      for (const PodPtr& pod : candidate.pods) waiting.push_back(AsPending(*pod));
      PlanOptions options;
      options.out_of_time = out_of_time_;
      const Plan plan =
          MakePlan(TargetsIn(without, waiting, frameworks_), waiting, frameworks_, options);
      for (size_t i = 0; i < plan.pods.size(); ++i) {
        const PodOutcome& outcome = plan.pods[i];
        if (!outcome.placed) return WhyUnplaced(outcome);
        emptied.moves.push_back({candidate.pods[i], candidate.name, outcome.node, outcome.devices});
      }
    }
    for (const Move& move : emptied.moves) {
      if (!BindMoved(move, without).ok()) {
        return Reason{codes::kNoRoom, fmt::format("node {} is not there any more", move.to), 0};
      }
    }
    for (const Move& move : emptied.moves) takes_moved_.insert(move.to);
    plan_.after = std::move(without);
    plan_.nodes.push_back(std::move(emptied));
    return std::nullopt;
  }

  static Reason WhyUnplaced(const PodOutcome& outcome) {
    const std::string why =
        outcome.reasons.empty() ? "no node has room" : outcome.reasons.front().message;
    return {codes::kNoRoom,
            fmt::format("{} has no other place: {}", scheduling::PodText(outcome.pod->Key()), why),
            0};
  }

  const std::vector<NodePoolState>& pools_;
  const scheduling::FrameworkChoice& frameworks_;
  const ShrinkOptions& options_;
  const std::function<bool()> out_of_time_;
  EvictionBudgets budgets_;  // after the evictions planned so far
  std::vector<int> left_;    // by group: remaining nodes
  std::set<std::string> takes_moved_;
  int tries_ = 0;
  ShrinkPlan plan_;
};

}  // namespace

ShrinkPlan PlanShrink(const cluster::ClusterSnapshot& snapshot,
                      const std::vector<NodePoolState>& pools,
                      const scheduling::FrameworkChoice& frameworks, const ShrinkOptions& options) {
  return Shrinker(snapshot, pools, frameworks, options).Run();
}

}  // namespace nos::planning
