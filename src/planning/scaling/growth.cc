#include "planning/growth.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cluster/node_template.h"
#include "planning/explanation/explain.h"
#include "planning/mobility.h"
#include "planning/pool_nodes.h"
#include "planning/scaling/consolidate_nodes.h"
#include "planning/scaling/exhaustive_node_mix.h"
#include "planning/scaling/greedy_node_mix.h"
#include "planning/scaling/growth_reasons.h"
#include "planning/scaling/growth_world.h"
#include "planning/translation/checked_search.h"
#include "planning/translation/live_filters.h"
#include "scheduling/pod_state.h"

namespace nos::planning {
namespace {

constexpr int kMaxNodes = 3000;  // limit of nodes in one plan
constexpr int kMaxRounds = 4;    // rounds of adding nodes after objections of live filters

class Grower {
 public:
  Grower(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
         const std::vector<NodePoolState>& pools, const scheduling::FrameworkChoice& frameworks,
         const PlanOptions& options, bool beside)
      : pools_(pools),
        frameworks_(frameworks),
        out_of_time_(options.out_of_time ? options.out_of_time : [] { return false; }),
        world_(MakeGrowthWorld(snapshot, unplaced, pools, frameworks, options, beside)),
        types_(world_.types.problem),
        states_(types_),
        coverer_(types_, world_.node_types, states_, out_of_time_) {
    states_.StopWhen(out_of_time_);
  }

  GrowthPlan Run() {
    // 1. Leave out pods that no node type can serve.
    FindWanted();
    Bins bins;
    if (std::ranges::any_of(wanted_, [](int count) { return count > 0; })) {
      // 2. A greedy mix. If it does not serve all pods, search which pods the limited nodes serve
      //    best.
      bins = Improved(coverer_.Cover(wanted_));
      if (ServesAll(bins)) {
        levels_proven_ = true;
      } else {
        Share(bins);
      }
      // 3. A cheaper mix by exhaustive search, if the problem is small.
      FindCheapestIfSmall(bins);
      // 4. Correct places that filters reject. Last, because the replay needs all new nodes.
      if (world_.live) ApplyLiveFilters(bins);
    } else {
      levels_proven_ = cheapest_proven_ = true;
    }
    // 5. Use free nodes before paid ones, and rate the result.
    UseFreeFirst(world_.node_types, bins);
    const std::vector<int> sure = world_.live ? BesideThoseOnNodesThereAlone(bins) : Placed(bins);
    score_ = ScoreOf(types_, sure);
    serves_all_ = sure == wanted_;
    return Write(bins);
  }

  const std::vector<int64_t>& score() const { return score_; }
  // True if using existing nodes may have displaced pods: the pods of a gang may have to be near
  // each other, which the first plan does not check.
  bool MayDoBetterAlone() const {
    return world_.live && !serves_all_ &&
           std::ranges::any_of(world_.node_types, &NodeType::IsThere);
  }

 private:
  std::vector<int> Placed(const Bins& bins) const { return PlacedOf(bins, wanted_.size()); }
  std::vector<int64_t> Score(const Bins& bins) const { return ScoreOf(types_, Placed(bins)); }
  bool ServesAll(const Bins& bins) const { return Placed(bins) == wanted_; }
  bool IsBetter(const Bins& a, const Bins& b) const {
    const auto left = Score(a), right = Score(b);
    if (left != right) return left > right;
    return CostOf(a, world_.node_types) < CostOf(b, world_.node_types);
  }

  // Placed pods by class, without gangs that use existing nodes only. The plan for the existing
  // nodes did not find these places and may not find them next time either, so such gangs do not
  // count.
  std::vector<int> BesideThoseOnNodesThereAlone(const Bins& bins) const {
    std::vector<int> placed = Placed(bins);
    std::vector<bool> gets_new(types_.gangs.size());
    for (const Bin& bin : bins) {
      if (world_.node_types[bin.type].IsThere()) continue;
      for (const BinAssignment& assignment : bin.assignments) {
        const int gang = types_.classes[assignment.cls].gang;
        if (gang >= 0) gets_new[gang] = true;
      }
    }
    for (size_t c = 0; c < placed.size(); ++c) {
      const int gang = types_.classes[c].gang;
      if (gang >= 0 && !gets_new[gang]) placed[c] = 0;
    }
    return placed;
  }
  Bins Improved(Bins bins) {
    return ConsolidateNewNodes(types_, world_.node_types, coverer_, states_, std::move(bins),
                               out_of_time_);
  }

  // The pods that fit on some node on their own; no pod of a gang if fewer fit than it lacks.
  void FindWanted() {
    wanted_.assign(types_.classes.size(), 0);
    std::vector<int> of_gang(types_.gangs.size());
    for (size_t c = 0; c < wanted_.size(); ++c) {
      const PodClass& cls = types_.classes[c];
      if (!coverer_.Fits(static_cast<int>(c))) continue;
      wanted_[c] = cls.count;
      if (cls.gang >= 0 && !cls.extra) of_gang[cls.gang] += cls.count;
    }
    for (size_t c = 0; c < wanted_.size(); ++c) {
      const int gang = types_.classes[c].gang;
      if (gang >= 0 && of_gang[gang] < types_.gangs[gang].lacking) wanted_[c] = 0;
    }
  }

  // For too few nodes: the planner's search on all of them decides which pods are served, then a
  // cheaper mix for the same pods is searched.
  void Share(Bins& bins) {
    if (out_of_time_()) return;
    Bins all = AllNodes();
    levels_proven_ = SearchOn(types_, states_, wanted_, out_of_time_, all) && has_all_nodes_;
    UseFreeFirst(world_.node_types, all);
    DropEmpty(all);
    all = Improved(std::move(all));
    if (IsBetter(all, bins)) bins = std::move(all);
    Bins cheaper = Improved(coverer_.Cover(Placed(bins)));
    if (IsBetter(cheaper, bins)) bins = std::move(cheaper);
  }

  // Takes as many nodes of each type as could be useful; proportionally fewer if that exceeds the
  // limit.
  Bins AllNodes() {
    std::vector<int64_t> counts;
    int64_t all = 0;
    for (size_t t = 0; t < world_.node_types.size(); ++t) {
      const NodeType& type = world_.node_types[t];
      int64_t useful = 0;
      for (size_t c = 0; c < wanted_.size(); ++c) {
        if (coverer_.Alone(static_cast<int>(c), static_cast<int>(t)) > 0) useful += wanted_[c];
      }
      counts.push_back(std::min<int64_t>(type.Free() + type.room, useful));
      all += counts.back();
    }
    has_all_nodes_ = all <= kMaxNodes;
    Bins bins;
    for (size_t t = 0; t < counts.size(); ++t) {
      if (!has_all_nodes_ && counts[t] > 0) {
        counts[t] = std::max<int64_t>(1, counts[t] * kMaxNodes / all);
      }
      const int free = world_.node_types[t].Free();
      for (int i = 0; i < counts[t]; ++i) bins.push_back({static_cast<int>(t), i >= free});
    }
    return bins;
  }

  void FindCheapestIfSmall(Bins& bins) {
    if (!IsSmall(world_.node_types, wanted_) || out_of_time_()) return;
    cheapest_proven_ = FindCheapestNodeMix(types_, world_.node_types, coverer_, states_, wanted_,
                                           ServesAll(bins), out_of_time_, bins);
  }

  // Until now live filters have seen each node without the pods of other new nodes. If one objects,
  // the planner searches other places on these nodes, and nodes are added for unserved pods: in the
  // last attempt one node per pod.
  void ApplyLiveFilters(Bins& bins) {
    levels_proven_ = cheapest_proven_ = false;
    for (int round = 1; !bins.empty(); ++round) {
      BinWorld made = MakeBinWorld(world_, pools_, bins);
      if (!Settle(made, bins) || round == kMaxRounds || out_of_time_()) break;
      std::vector<int> left = wanted_;
      const std::vector<int> placed = Placed(bins);
      for (size_t c = 0; c < left.size(); ++c) left[c] -= placed[c];
      if (!AddNodes(left, round > 1, bins)) break;
    }
    TakeOutBrokenGangs(types_, bins);
    DropEmpty(bins);
  }

  // True if pods have lost their places because of a filter.
  bool Settle(BinWorld& made, Bins& bins) {
    for (size_t c = 0; c < wanted_.size(); ++c) {
      made.translation.problem.classes[c].count = wanted_[c];
    }
    StagedResult as_they_are{Load(made.translation.problem, states_, bins), {}, {}, 0, true};
    std::vector<int> next(wanted_.size());
    for (const PlacedPod& pod : as_they_are.draft.pods()) {
      as_they_are.members.push_back(next[pod.cls]++);
    }
    PlanChecker checker(made.snapshot, frameworks_);
    const bool agreed =
        ServesAll(bins) && checker.FindObjections(made.translation, as_they_are).empty();
    if (agreed) return false;
    const StagedResult found = SearchAndCheck(checker, 0, made.translation, states_, out_of_time_);
    Unload(found.draft, bins);
    return !ServesAll(bins);
  }

  // Adds empty nodes for `left`; `each`: one per pod. False if no node could be added.
  bool AddNodes(const std::vector<int>& left, bool each, Bins& bins) {
    std::vector<int> room;
    room.reserve(world_.node_types.size());
    for (const NodeType& type : world_.node_types) room.push_back(type.Free() + type.room);
    for (const Bin& bin : bins) --room[bin.type];
    std::vector<int> more;
    if (each) {
      for (size_t c = 0; c < left.size(); ++c) {
        for (int i = 0; i < left[c]; ++i) more.push_back(CheapestFor(static_cast<int>(c), room));
      }
    } else {
      more = TypesOf(coverer_.Cover(left));
    }
    const size_t before = bins.size();
    for (const int type : more) {
      if (type < 0 || room[type] <= 0 || bins.size() >= kMaxNodes) continue;
      --room[type];
      bins.push_back({type, true});
    }
    // The types of the mix may be exhausted; others may not.
    if (!each && bins.size() == before) return AddNodes(left, true, bins);
    return bins.size() > before;
  }

  // -1 if no type with nodes left fits.
  int CheapestFor(int cls, const std::vector<int>& room) const {
    int best = -1;
    for (size_t t = 0; t < room.size(); ++t) {
      if (room[t] <= 0 || coverer_.Alone(cls, static_cast<int>(t)) == 0) continue;
      const auto price = [&](size_t type) { return world_.node_types[type].price; };
      if (best < 0 || price(t) < price(best)) best = static_cast<int>(t);
    }
    return best;
  }

  GrowthPlan Write(const Bins& bins) {
    GrowthPlan plan;
    plan.pools.resize(pools_.size());
    for (size_t p = 0; p < pools_.size(); ++p) {
      plan.pools[p].problem = world_.problems[p];
      // Without a template only the minimum is requested: its first nodes show what the group's
      // nodes are.
      if (!cluster::IsDescribed(*pools_[p].pool)) plan.pools[p].count = LacksToMinimum(pools_[p]);
    }
    for (const NodeType& type : world_.node_types) {
      if (!type.IsThere()) plan.pools[type.pool].count = type.due;
    }
    GrowthOutcome outcome{Placed(bins), std::vector<int>(world_.node_types.size()), true};
    WriteNodes(bins, outcome, plan);
    const GrowthCost cost = CostOf(bins, world_.node_types);
    plan.milli_price = cost.price;
    plan.served = std::accumulate(outcome.placed.begin(), outcome.placed.end(), 0);
    outcome.in_time = !out_of_time_();
    WriteLeftOut(outcome, plan);
    plan.proven = levels_proven_ && cheapest_proven_ && world_.has_all_hosts;
    return plan;
  }

  void WriteNodes(const Bins& bins, GrowthOutcome& outcome, GrowthPlan& plan) const {
    const std::vector<std::string> names = NamesOf(world_, pools_, bins);
    std::vector<int> next(wanted_.size()), coming;
    for (const NodeType& type : world_.node_types) coming.push_back(type.coming);
    for (size_t b = 0; b < bins.size(); ++b) {
      const Bin& bin = bins[b];
      if (bin.assignments.empty()) continue;
      const int pool = world_.node_types[bin.type].pool;
      const bool is_there = world_.node_types[bin.type].IsThere();
      const bool is_coming = !is_there && !bin.paid && coming[bin.type]-- > 0;
      NewNode node{pool, names[b], is_coming, {}};
      for (const BinAssignment& assignment : bin.assignments) {
        node.pods.push_back(world_.types.members[assignment.cls][next[assignment.cls]++]);
      }
      plan.nodes.push_back(std::move(node));
      if (!bin.paid || is_there) continue;
      ++outcome.used[bin.type];
      ++plan.pools[pool].count;
    }
  }

  void WriteLeftOut(const GrowthOutcome& outcome, GrowthPlan& plan) {
    const Translation& t = world_.types;
    GrowthReasons reasons(world_, pools_, coverer_, states_, outcome);
    std::vector<LeftOut> of_class(wanted_.size());
    for (size_t c = 0; c < wanted_.size(); ++c) {
      if (outcome.placed[c] == types_.classes[c].count) continue;
      of_class[c] = reasons.WhyLeftOut(static_cast<int>(c));
      for (size_t m = outcome.placed[c]; m < t.members[c].size(); ++m) {
        plan.left_out.push_back(of_class[c]);
        plan.left_out.back().pod = t.members[c][m];
      }
    }
    for (size_t i = 0; i < t.pending.size(); ++i) {
      if (t.class_of[i] >= 0) continue;
      plan.left_out.push_back(
          {static_cast<int>(i), NotPlanned(*t.pending[i], t.gang_of[i]).reasons.front(), -1});
    }
    std::ranges::sort(plan.left_out, {}, &LeftOut::pod);
  }

  const std::vector<NodePoolState>& pools_;
  const scheduling::FrameworkChoice& frameworks_;
  const std::function<bool()> out_of_time_;
  const GrowthWorld world_;
  const Problem& types_;
  GpuStates states_;
  GreedyNodeMix coverer_;
  std::vector<int> wanted_;  // by class: pods that some group could serve
  bool has_all_nodes_ = true;
  bool levels_proven_ = false, cheapest_proven_ = false;
  std::vector<int64_t> score_;  // of the places that count
  bool serves_all_ = true;
};

bool IsIdle(const cluster::NodeInfo& node) {
  const cluster::Condition* ready = cluster::FindCondition(node.node->conditions, "Ready");
  return !node.node->unschedulable && !node.node->meta.deleted &&
         (ready == nullptr || ready->status == "True") &&
         std::ranges::all_of(node.pods, [](const auto& pod) {
           return MobilityOf(*pod, {}).kind == Mobility::kGoes;
         });
}

// True if the node accepts every pod that a new node of the group would. Otherwise such pods would
// wait for it for ever.
bool IsAsNew(const cluster::NodeInfo& info, const cluster::NodePool& pool) {
  const cluster::Node& node = *info.node;
  const auto has = [&](const std::string& name, Quantity least) {
    const auto found = node.allocatable.find(name);
    return found != node.allocatable.end() && found->second >= least;
  };
  const bool open = std::ranges::all_of(node.taints, [&](const cluster::Taint& taint) {
    return taint.effect == "PreferNoSchedule" ||
           std::ranges::any_of(pool.taints, [&](const cluster::Taint& own) {
             return own.key == taint.key && own.effect == taint.effect;
           });
  });
  const bool large = std::ranges::all_of(pool.resources, [&](const auto& of) {
    const Quantity part = Quantity::FromMilli(of.second.MilliValue() / cluster::kAlikePart);
    return has(of.first, of.second - part);
  });
  if (!open || !large || pool.gpu.count == 0) return open && large;
  if (pool.gpu.partitioning == cluster::SharingMode::kNone) {
    return has(std::string(cluster::kWholeGpuResource), Quantity::FromValue(pool.gpu.count));
  }
  return std::ranges::count_if(info.gpus.gpus, &cluster::Gpu::reported) >= pool.gpu.count;
}

// Counts idle nodes as nodes that have not joined yet, so that they are not requested again.
std::vector<NodePoolState> WithIdleAsComing(const cluster::ClusterSnapshot& snapshot,
                                            std::vector<NodePoolState> pools) {
  std::vector<std::shared_ptr<const cluster::NodePool>> own;
  own.reserve(pools.size());
  for (const NodePoolState& now : pools) own.push_back(now.pool);
  for (size_t n = 0; n < snapshot.size(); ++n) {
    const int pool = PoolOf(*snapshot.node(n).node, own);
    if (pool < 0 || pools[pool].nodes <= 0 || !IsIdle(snapshot.node(n))) continue;
    if (!IsAsNew(snapshot.node(n), *own[pool])) continue;
    --pools[pool].nodes;
    ++pools[pool].coming;
  }
  return pools;
}

}  // namespace

GrowthPlan PlanGrowth(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                      const std::vector<NodePoolState>& pools,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options) {
  // 1. A plan in which gangs may use existing nodes.
  Grower beside(snapshot, unplaced, pools, frameworks, options, true);
  GrowthPlan plan = beside.Run();
  if (!beside.MayDoBetterAlone()) return plan;
  // 2. Filters may have rejected such a mix, so also plan with new nodes only. Idle nodes count as
  //    new ones, so that they are not requested again.
  const std::vector<NodePoolState> idle = WithIdleAsComing(snapshot, pools);
  Grower alone(snapshot, unplaced, idle, frameworks, options, false);
  GrowthPlan other = alone.Run();
  if (alone.score() <= beside.score()) return plan;
  other.proven = false;
  return other;
}

}  // namespace nos::planning
