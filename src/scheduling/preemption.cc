#include "scheduling/preemption.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "scheduling/preemption/trial.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;
using SharedPod = std::shared_ptr<const Pod>;

constexpr int kMostTrials = 10'000;

Time StartOf(const Pod& pod) { return pod.started.value_or(Time::max()); }

// Of higher priority, else running for longer.
bool MoreImportant(const SharedPod& a, const SharedPod& b) {
  if (a->priority != b->priority) return a->priority > b->priority;
  if (StartOf(*a) != StartOf(*b)) return StartOf(*a) < StartOf(*b);
  return a->Key() < b->Key();
}

using MayGo = FunctionRef<bool(const Pod&)>;

// The most important first.
std::vector<SharedPod> ThoseThat(MayGo may_go, const NodeInfo& node) {
  std::vector<SharedPod> pods;
  std::ranges::copy_if(node.pods, std::back_inserter(pods),
                       [&](const SharedPod& other) { return may_go(*other); });
  std::ranges::sort(pods, MoreImportant);
  return pods;
}

// Those with a pod on the node, whether they may go or not; the most important first.
std::vector<EvictionUnit> UnitsOn(const NodeInfo& node, const EvictionRule& rule) {
  std::vector<EvictionUnit> units;
  std::set<std::string> seen;
  for (const SharedPod& pod : node.pods) {
    EvictionUnit unit = rule.UnitOf(pod);
    const bool elsewhere = unit.size() == 1 && unit.front()->Key() != pod->Key();
    if (elsewhere) unit = {pod};  // what is left of its gang: it is ending itself
    if (unit.size() == 1 || seen.insert(unit.front()->Key()).second) {
      units.push_back(std::move(unit));
    }
  }
  std::ranges::sort(units, [](const EvictionUnit& a, const EvictionUnit& b) {
    return MoreImportant(a.front(), b.front());
  });
  return units;
}

// Looks for those that have to go from one node.
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
  std::optional<Preemption> Find() {
    std::vector<EvictionUnit> units = UnitsOn(node_, rule_);
    if (std::ranges::none_of(units, [&](const EvictionUnit& u) { return rule_.MayGo(u); })) {
      return std::nullopt;
    }
    trial_ = std::make_unique<Trial>(framework_, snapshot_, cycle_, pod_, node_, promises_);
    std::ranges::reverse(units);
    const std::vector<EvictionUnit> kept = RemoveWhoMayGo(units);
    if (!trial_->Fits() && (kept.empty() || !FitsWithout(kept, units))) return std::nullopt;
    const bool let_in = rule_.LetsIn();
    Budgets budgets = budgets_;
    std::vector<EvictionUnit> guarded, others;
    for (auto unit = gone_.rbegin(); unit != gone_.rend(); ++unit) {
      (Violations(budgets, *unit) > 0 ? guarded : others).push_back(*unit);
    }
    const std::vector<EvictionUnit> all = gone_;
    TakeBack(guarded, let_in);
    TakeBack(others, let_in);
    if (rule_.WantsFewest() && PodsOf(gone_) > 1) TakeFewer(all, guarded, others, let_in);
    if (!MayGoInTurn(all)) {
      Become(all);
      for (const auto* units_of : {&guarded, &others}) {
        for (const EvictionUnit& unit : *units_of) Keep(unit, let_in, &all);
      }
    }
    if (!let_in && !AddMore(guarded)) return std::nullopt;
    Preemption preemption{node_.node->meta.name, {}, 0};
    for (const EvictionUnit& unit : gone_) {
      preemption.violations += std::ranges::find(guarded, unit) != guarded.end() ? 1 : 0;
      std::ranges::copy(unit, std::back_inserter(preemption.victims));
    }
    std::ranges::sort(preemption.victims, MoreImportant);
    return preemption;
  }

  // As many as can stay, the first of them first.
  void TakeBack(const std::vector<EvictionUnit>& units, bool let_in) {
    for (const EvictionUnit& unit : units) Keep(unit, let_in);
  }

  // Leaves those gone that are the fewest: the least important of which one alone is enough,
  // without violating a budget; else who is left when those stay first that have the least of what
  // lacks.
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

  // Just these are gone.
  void Become(const std::vector<EvictionUnit>& units) {
    while (!gone_.empty()) PutBack(EvictionUnit(gone_.back()));
    for (const EvictionUnit& unit : units) Remove(unit);
  }

  // Those that may not, or not any more, stay: they are returned. Some may only when others have
  // gone.
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
  // Whether there is room when those go first that the others were taken before.
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

  // Those that it lacks besides, wherever they are. Where they leave this node, too, some of those
  // that went for room may have it.
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

  // Those of the unit that are on this node, as it has them.
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
  // Takes it back if the pod has room and is let in all the same, and, with `order`, if the others
  // may go all the same.
  void Keep(const EvictionUnit& unit, bool let_in,
            const std::vector<EvictionUnit>* order = nullptr) {
    PutBack(unit);
    if (!IsEnough(let_in) || (order != nullptr && !MayGoInTurn(*order))) Remove(unit);
  }
  // Whether each that is gone might, beside those that go before it in this order. Others of its
  // own quota may have made the pod one for which it might, and stay now.
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
  std::vector<EvictionUnit> gone_;  // the least important first
};

// The less, the better; the first victim is the most important.
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
  const Budgets budgets(snapshot.around());
  bool harmless = false;  // there is one that violates no budget
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

// Tries all sets of so many pods on every node, as long as trials are left.
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
  // Takes so many of the pods away until it fits.
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
  int trials_ = kMostTrials;
};

}  // namespace

bool EndsByPreemption(const Pod& pod) {
  const cluster::Condition* target = pod.FindCondition("DisruptionTarget");
  return pod.meta.deleted && target != nullptr && target->status == "True" &&
         target->reason == "PreemptionByScheduler";
}

bool IsLost(const cluster::Node& node) {
  return std::ranges::any_of(node.taints, [](const cluster::Taint& taint) {
    return taint.key == "node.kubernetes.io/unreachable";
  });
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

// Violations first: they are worse than any number.
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
