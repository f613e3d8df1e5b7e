#include "scheduling/preemption.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "scheduling/framework.h"
#include "scheduling/preemption/trial.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;
using SharedPod = std::shared_ptr<const Pod>;

constexpr int kMaxTrials = 10'000;

Time StartOf(const Pod& pod) { return pod.started.value_or(Time::max()); }

// Order of importance: higher priority first, then running for longer.
bool MoreImportant(const SharedPod& a, const SharedPod& b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  if (StartOf(*a) != StartOf(*b)) return StartOf(*a) < StartOf(*b);
  return a->Key() < b->Key();
}

using MayGo = FunctionRef<bool(const Pod&)>;

// Pods on the node that `may_go` allows, most important first.
std::vector<SharedPod> ThoseThat(MayGo may_go, const NodeInfo& node) {
  std::vector<SharedPod> pods;
  std::ranges::copy_if(node.pods, std::back_inserter(pods),
                       [&](const SharedPod& other) { return may_go(*other); });
  std::ranges::sort(pods, MoreImportant);
  return pods;
}

// Units with a pod on the node, whether they may be evicted or not, most important first.
std::vector<EvictionUnit> UnitsOn(const NodeInfo& node, const EvictionRule& rule) {
  std::vector<EvictionUnit> units;
  std::set<std::string> seen;
  for (const SharedPod& pod : node.pods) {
    EvictionUnit unit = rule.UnitOf(pod);
    const bool elsewhere = unit.size() == 1 && unit.front()->Key() != pod->Key();
    if (elsewhere) unit = {pod};  // A terminating member, which its gang's unit no longer contains.
    if (unit.size() == 1 || seen.insert(unit.front()->Key()).second) {
      units.push_back(std::move(unit));
    }
  }
  std::ranges::sort(units, [](const EvictionUnit& a, const EvictionUnit& b) {
    return MoreImportant(a.front(), b.front());
  });
  return units;
}

// Searches for the victims of a preemption on one node.
class NodeSearch {
 public:
  NodeSearch(const Framework& framework, const ClusterSnapshot& snapshot, const Cycle& cycle,
             const Pod& pod, const NodeInfo& node, EvictionRule& rule, const Promises& promises,
             const Budgets& budgets)
      : framework_(framework),
        snapshot_(snapshot),
        cycle_(cycle),
        pod_(pod),
        node_(node),
        rule_(rule),
        promises_(promises),
        budgets_(budgets) {}

  std::optional<Preemption> Run() {
    auto found = Find();
    for (const EvictionUnit& unit : gone_) rule_.Count(unit, false);
    return found;
  }

 private:
  // Starts from everything that may be evicted, because that decides whether the node can help at
  // all, and then reduces the set.
  std::optional<Preemption> Find() {
    std::vector<EvictionUnit> units = UnitsOn(node_, rule_);
    if (std::ranges::none_of(units, [&](const EvictionUnit& u) { return rule_.MayGo(u); })) {
      return std::nullopt;
    }
    // 1. Evict every unit that may be evicted, least important first. If the pod does not fit even
    //    then, the node cannot help.
    trial_ = std::make_unique<Trial>(framework_, snapshot_, cycle_, pod_, node_, promises_);
    std::ranges::reverse(units);
    const std::vector<EvictionUnit> kept = RemoveWhoMayGo(units);
    if (!trial_->Fits() && (kept.empty() || !FitsWithout(kept, units))) return std::nullopt;
    const bool let_in = rule_.LetsIn();
    // 2. Add back as many units as possible. Units guarded by a budget come first, so that budgets
    //    are violated only if nothing else helps.
    Budgets budgets = budgets_;
    std::vector<EvictionUnit> guarded, others;
    for (auto unit = gone_.rbegin(); unit != gone_.rend(); ++unit) {
      (Violations(budgets, *unit) > 0 ? guarded : others).push_back(*unit);
    }
    const std::vector<EvictionUnit> all = gone_;
    TakeBack(guarded, let_in);
    TakeBack(others, let_in);
    // 3. If few victims matter more than unimportant ones, look for a smaller set.
    if (rule_.WantsFewest() && PodsOf(gone_) > 1) TakeFewer(all, guarded, others, let_in);
    // 4. A unit that was added back may be the reason why another victim was allowed. Add
    //    back again, keeping a unit only if the rule still allows the remaining victims.
    if (!MayGoInTurn(all)) {
      Become(all);
      for (const auto* units_of : {&guarded, &others}) {
        for (const EvictionUnit& unit : *units_of) Keep(unit, let_in, &all);
      }
    }
    // 5. The node has capacity. Evict further units, on any nodes, if the quota requires them.
    if (!let_in && !AddMore(guarded)) return std::nullopt;
    Preemption preemption{node_.node->meta.name, {}, 0};
    for (const EvictionUnit& unit : gone_) {
      preemption.violations += std::ranges::find(guarded, unit) != guarded.end() ? 1 : 0;
      std::ranges::copy(unit, std::back_inserter(preemption.victims));
    }
    std::ranges::sort(preemption.victims, MoreImportant);
    return preemption;
  }

  // Adds back as many units as possible, in this order.
  void TakeBack(const std::vector<EvictionUnit>& units, bool let_in) {
    for (const EvictionUnit& unit : units) Keep(unit, let_in);
  }

  // Chooses the smallest set of victims: the least important single pod that is enough and violates
  // no budget, else the victims that remain if units with the least of the missing resources are
  // added back first. Keeps the current set if that is not larger.
  void TakeFewer(const std::vector<EvictionUnit>& all, const std::vector<EvictionUnit>& guarded,
                 std::vector<EvictionUnit> others, bool let_in) {
    const std::vector<EvictionUnit> found = gone_;
    Become({});
    for (auto unit = others.rbegin(); unit != others.rend(); ++unit) {
      if (unit->size() > 1 || !rule_.MayGo(*unit) || !rule_.MayBeEnough(*unit)) continue;
      Remove(*unit);
      if (IsEnough(let_in)) return;
      PutBack(EvictionUnit(*unit));
    }
    const auto worth = [&](const EvictionUnit& unit) { return rule_.WorthOf(unit); };
    if (!std::ranges::is_sorted(others, {}, worth)) {
      Become(all);
      std::ranges::sort(others, [&](const EvictionUnit& a, const EvictionUnit& b) {
        const double left = worth(a), right = worth(b);
        return left != right ? left < right : MoreImportant(a.front(), b.front());
      });
      TakeBack(guarded, let_in);
      TakeBack(others, let_in);
      if (PodsOf(gone_) < PodsOf(found)) return;
    }
    Become(found);
  }

  static size_t PodsOf(const std::vector<EvictionUnit>& units) {
    size_t count = 0;
    for (const EvictionUnit& unit : units) count += unit.size();
    return count;
  }

  // Makes exactly these units the evicted ones.
  void Become(const std::vector<EvictionUnit>& units) {
    while (!gone_.empty()) PutBack(EvictionUnit(gone_.back()));
    for (const EvictionUnit& unit : units) Remove(unit);
  }

  // Evicts all units that the rule allows and returns the others. Repeats until nothing changes,
  // because a unit may be allowed only after others are evicted.
  std::vector<EvictionUnit> RemoveWhoMayGo(std::vector<EvictionUnit> units) {
    for (size_t before = SIZE_MAX; units.size() < before;) {
      before = units.size();
      std::erase_if(units, [&](const EvictionUnit& unit) {
        const bool goes = rule_.MayGo(unit);
        if (goes) Remove(unit);
        return goes;
      });
    }
    return units;
  }
  // Retries in another order: evicts `first` before the other units.
  bool FitsWithout(const std::vector<EvictionUnit>& first, const std::vector<EvictionUnit>& units) {
    Become({});
    (void)RemoveWhoMayGo(first);
    if (gone_.empty()) return false;
    std::vector<EvictionUnit> rest = units;
    std::erase_if(rest, [&](const EvictionUnit& unit) {
      return std::ranges::find(gone_, unit) != gone_.end();
    });
    (void)RemoveWhoMayGo(rest);
    return trial_->Fits();
  }

  // Evicts units that the quota requires, on any nodes. If some of them are on this node, units
  // evicted for capacity may become unnecessary and are added back.
  bool AddMore(std::vector<EvictionUnit>& guarded) {
    Budgets budgets = budgets_;
    for (const EvictionUnit& unit : gone_) (void)Violations(budgets, unit);
    const auto more = rule_.More(budgets);
    if (!more) return false;
    const std::vector<EvictionUnit> for_room = gone_;
    for (const EvictionUnit& unit : *more) {
      if (Violations(budgets, unit) > 0) guarded.push_back(unit);
      Remove(unit);
    }
    const std::vector<EvictionUnit> all = gone_;
    for (const EvictionUnit& unit : for_room) Keep(unit, true, &all);
    return true;
  }

  static int Violations(Budgets& budgets, const EvictionUnit& unit) {
    int violations = 0;
    for (const SharedPod& pod : unit) violations += budgets.Take(*pod) ? 1 : 0;
    return violations;
  }

  // Pods of the unit that run on this node.
  EvictionUnit HereOf(const EvictionUnit& unit) const {
    EvictionUnit here;
    std::ranges::copy_if(node_.pods, std::back_inserter(here), [&](const SharedPod& other) {
      return std::ranges::any_of(unit, [&](const SharedPod& pod) {
        return pod->meta.name == other->meta.name && pod->meta.ns == other->meta.ns;
      });
    });
    return here;
  }

  void Remove(const EvictionUnit& unit) {
    for (const SharedPod& pod : HereOf(unit)) trial_->Remove(pod);
    rule_.Count(unit, true);
    gone_.push_back(unit);
  }
  void PutBack(const EvictionUnit& unit) {
    for (const SharedPod& pod : HereOf(unit)) trial_->Add(pod);
    rule_.Count(unit, false);
    std::erase(gone_, unit);
  }
  bool IsEnough(bool let_in) const { return trial_->Fits() && (!let_in || rule_.LetsIn()); }
  // Adds the unit back if the pod still fits and is admitted, and, with `order`, if the rule still
  // allows the other victims.
  void Keep(const EvictionUnit& unit, bool let_in,
            const std::vector<EvictionUnit>* order = nullptr) {
    PutBack(unit);
    if (!IsEnough(let_in) || (order != nullptr && !MayGoInTurn(*order))) Remove(unit);
  }
  // True if every evicted unit is allowed given only the units before it in `order`. A unit may
  // have been allowed only because units of its own quota were evicted that have been added back.
  bool MayGoInTurn(const std::vector<EvictionUnit>& order) {
    std::vector<EvictionUnit> gone = order;
    std::erase_if(gone, [&](const EvictionUnit& unit) {
      return std::ranges::find(gone_, unit) == gone_.end();
    });
    for (const EvictionUnit& unit : gone) rule_.Count(unit, false);
    bool may = true;
    for (const EvictionUnit& unit : gone) {
      may = may && rule_.MayGo(unit);
      rule_.Count(unit, true);
    }
    return may;
  }

  const Framework& framework_;
  const ClusterSnapshot& snapshot_;
  const Cycle& cycle_;
  const Pod& pod_;
  const NodeInfo& node_;
  EvictionRule& rule_;
  const Promises& promises_;
  const Budgets& budgets_;
  std::unique_ptr<Trial> trial_;
  std::vector<EvictionUnit> gone_;  // least important first
};

// Lower is better. REQUIRES: victims are sorted, most important first.
auto CostOf(const Preemption& p) {
  int64_t sum = 0;
  Time youngest_start = Time::max();
  for (const SharedPod& victim : p.victims) {
    sum += int64_t{victim->priority} + (int64_t{1} << 31);
    if (victim->priority == p.victims.front()->priority) {
      youngest_start = std::min(youngest_start, StartOf(*victim));
    }
  }
  const int64_t highest = p.victims.empty() ? INT64_MIN : p.victims.front()->priority;
  return std::tuple(p.violations, highest, sum, p.victims.size(),
                    -youngest_start.time_since_epoch().count());
}

std::vector<Preemption> Candidates(const Framework& framework, const ClusterSnapshot& snapshot,
                                   const Pod& pod, const PreemptionOptions& options,
                                   EvictionRule& rule, const Promises& promises = {}) {
  const Cycle cycle = framework.PreFilter(pod, snapshot);
  std::vector<Preemption> candidates;
  if (!cycle.verdict.fits()) return candidates;
  const auto nodes = static_cast<int64_t>(snapshot.size());
  const auto enough = static_cast<size_t>(
      std::max<int64_t>(nodes * options.min_candidate_percentage / 100, options.min_candidates));
  const Budgets budgets(snapshot.context());
  bool harmless = false;  // a candidate violates no budget
  std::optional<size_t> best;
  const auto order = rule.Order(snapshot);
  const size_t count = order ? order->size() : snapshot.size();
  for (size_t i = 0; i < count && !(harmless && candidates.size() >= enough); ++i) {
    if (best && rule.IsGood(candidates[*best], i)) break;
    const NodeInfo& node = snapshot.node(order ? (*order)[i] : i);
    const Verdict verdict = FilterBeside(framework, snapshot, cycle, pod, node, promises);
    if (verdict.kind != Verdict::Kind::kUnschedulable) continue;
    rule.LookAt(node);
    auto found = NodeSearch(framework, snapshot, cycle, pod, node, rule, promises, budgets).Run();
    if (!found) continue;
    harmless = harmless || found->violations == 0;
    candidates.push_back(*std::move(found));
    if (!best || IsSmaller(candidates.back(), candidates[*best])) best = candidates.size() - 1;
  }
  return candidates;
}

// Tries all sets of a given size on every node until the trials are used up.
class FewestSearch {
 public:
  FewestSearch(const Framework& framework, const ClusterSnapshot& snapshot, const Pod& pod,
               MayGo may_go)
      : framework_(framework),
        snapshot_(snapshot),
        pod_(pod),
        may_go_(may_go),
        cycle_(framework.PreFilter(pod, snapshot)) {}

  std::optional<Preemption> Find(size_t count) {
    std::optional<Preemption> best;
    for (size_t i = 0; i < snapshot_.size() && trials_ > 0 && cycle_.verdict.fits(); ++i) {
      const NodeInfo& node = snapshot_.node(i);
      if (framework_.Filter(cycle_, pod_, node).kind != Verdict::Kind::kUnschedulable) continue;
      std::vector<SharedPod> pods = ThoseThat(may_go_, node);
      if (pods.size() < count) continue;
      std::ranges::reverse(pods);
      Trial trial(framework_, snapshot_, cycle_, pod_, node);
      Preemption found{node.node->meta.name, {}, 0};
      if (!TryEach(pods, count, trial, found.victims)) continue;
      std::ranges::sort(found.victims, MoreImportant);
      if (!best || CostOf(found) < CostOf(*best)) best = std::move(found);
    }
    return best;
  }

 private:
  // Evicts `count` of the pods, in every combination, until the pod fits.
  bool TryEach(std::span<const SharedPod> pods, size_t count, Trial& trial,
               std::vector<SharedPod>& gone) {
    if (count == 0) return trials_-- > 0 && trial.Fits();
    for (size_t i = 0; i < pods.size() && trials_ > 0; ++i) {
      trial.Remove(pods[i]);
      gone.push_back(pods[i]);
      if (TryEach(pods.subspan(i + 1), count - 1, trial, gone)) return true;
      gone.pop_back();
      trial.Add(pods[i]);
    }
    return false;
  }

  const Framework& framework_;
  const ClusterSnapshot& snapshot_;
  const Pod& pod_;
  const MayGo may_go_;
  const Cycle cycle_;
  int trials_ = kMaxTrials;
};

}  // namespace

bool EndsByPreemption(const Pod& pod) {
  const cluster::Condition* target = pod.FindCondition("DisruptionTarget");
  return pod.meta.deleted && target != nullptr && target->status == "True" &&
         target->reason == "PreemptionByScheduler";
}

std::string WhyNotPreempt(const Framework& framework, const ClusterSnapshot& snapshot,
                          const Pod& pod) {
  if (pod.preemption_policy == "Never") return "not eligible due to preemptionPolicy=Never.";
  const NodeInfo* node = snapshot.Find(pod.nominated_node);
  if (node == nullptr) return "";
  const Cycle cycle = framework.PreFilter(pod, snapshot);
  const Verdict verdict = framework.Filter(cycle, pod, *node);
  if (verdict.kind == Verdict::Kind::kUnresolvable) return "";
  const bool ending = std::ranges::any_of(node->pods, [&](const SharedPod& other) {
    return other->priority < pod.priority && EndsByPreemption(*other);
  });
  return ending ? "not eligible due to a terminating pod on the nominated node." : "";
}

std::vector<Preemption> PreemptionCandidates(const Framework& framework,
                                             const ClusterSnapshot& snapshot, const Pod& pod,
                                             const PreemptionOptions& options, EvictionRule* rule,
                                             const Promises& promises) {
  const auto is_lesser = [&](const Pod& other) { return other.priority < pod.priority; };
  EachThat lesser(is_lesser);
  return Candidates(framework, snapshot, pod, options, rule == nullptr ? lesser : *rule, promises);
}

bool IsGentler(const Preemption& a, const Preemption& b) { return CostOf(a) < CostOf(b); }

// Violations first: a violated budget is worse than any number of victims.
bool IsSmaller(const Preemption& a, const Preemption& b) {
  const auto count = [](const Preemption& p) { return std::pair(p.violations, p.victims.size()); };
  return count(a) != count(b) ? count(a) < count(b) : CostOf(a) < CostOf(b);
}

std::optional<Preemption> FindPreemption(const Framework& framework,
                                         const ClusterSnapshot& snapshot, const Pod& pod,
                                         const PreemptionOptions& options, EvictionRule* rule,
                                         const Promises& promises) {
  std::vector<Preemption> candidates =
      PreemptionCandidates(framework, snapshot, pod, options, rule, promises);
  const bool fewest = rule != nullptr && rule->WantsFewest();
  const auto best = std::ranges::min_element(candidates, fewest ? IsSmaller : IsGentler);
  if (best == candidates.end()) return std::nullopt;
  return std::move(*best);
}

std::optional<Preemption> FindFewest(const Framework& framework, const ClusterSnapshot& snapshot,
                                     const Pod& pod, MayGo may_go) {
  constexpr size_t kTriedWhole = 2;
  FewestSearch search(framework, snapshot, pod, may_go);
  for (size_t count = 1; count <= kTriedWhole; ++count) {
    if (auto found = search.Find(count)) return found;
  }
  EachThat rule(may_go);
  auto candidates = Candidates(framework, snapshot, pod, {}, rule);
  std::erase_if(candidates, [](const Preemption& one) { return one.victims.empty(); });
  const auto count = [](const Preemption& one) { return one.victims.size(); };
  const auto fewest =
      std::ranges::min_element(candidates, [&](const Preemption& a, const Preemption& b) {
        return count(a) != count(b) ? count(a) < count(b) : IsGentler(a, b);
      });
  if (fewest == candidates.end()) return std::nullopt;
  return std::move(*fewest);
}

}  // namespace nos::scheduling
