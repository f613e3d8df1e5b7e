#include "scheduling/preemption.h"

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "cluster/selectors.h"

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

// What the budgets still allow while more and more pods are counted as gone.
class Budgets {
 public:
  explicit Budgets(const cluster::Surroundings& around) {
    for (const auto& [key, budget] : around.budgets.rows()) {
      const bool selects = budget->selector && (!budget->selector->match_labels.empty() ||
                                                !budget->selector->match_expressions.empty());
      if (selects) budgets_.push_back({budget.get(), budget->disruptions_allowed});
    }
  }
  // Counts the pod as gone. Whether that violates one.
  bool Take(const Pod& pod) {
    bool violates = false;
    for (auto& [budget, allowed] : budgets_) {
      if (budget->meta.ns != pod.meta.ns || pod.meta.labels.empty() ||
          !cluster::Matches(*budget->selector, pod.meta.labels)) {
        continue;
      }
      const auto& disrupted = budget->disrupted_pods;
      if (std::ranges::find(disrupted, pod.meta.name) != disrupted.end()) continue;
      violates = --allowed < 0 || violates;
    }
    return violates;
  }

 private:
  std::vector<std::pair<const cluster::PodDisruptionBudget*, int32_t>> budgets_;
};

// One node on which pods go and come back, and what the filters say of it.
class Trial {
 public:
  Trial(const Framework& framework, const ClusterSnapshot& snapshot, const Cycle& cycle,
        const Pod& pod, std::string node)
      : framework_(framework),
        snapshot_(snapshot),
        cycle_(cycle),
        pod_(pod),
        node_(std::move(node)) {}

  void Remove(const SharedPod& other) {
    held_[other->Key()] = *snapshot_.Vacate(*other, node_);  // it is there
    Follow(*other, false);
  }
  void Add(const SharedPod& other) {
    (void)snapshot_.Return(other, node_, held_[other->Key()]);  // the node is there
    Follow(*other, true);
  }
  bool Fits() const { return framework_.Filter(cycle_, pod_, Node()).fits(); }

 private:
  const NodeInfo& Node() const { return *snapshot_.Find(node_); }
  void Follow(const Pod& other, bool came) {
    const auto touch = [](std::string_view, std::string_view) {};
    for (const PreFilterPlugin* plugin : framework_.pre_filters()) {
      if (plugin->Update(pod_, other, came, Node(), cycle_.state, touch)) continue;
      cycle_ = framework_.PreFilter(pod_, snapshot_);
      return;
    }
  }

  const Framework& framework_;
  ClusterSnapshot snapshot_;
  Cycle cycle_;
  const Pod& pod_;
  const std::string node_;
  std::map<std::string, std::vector<cluster::PromisedInstance>> held_;  // by pods that are away
};

using MayGo = FunctionRef<bool(const Pod&)>;

// The most important first.
std::vector<SharedPod> ThoseThat(MayGo may_go, const NodeInfo& node) {
  std::vector<SharedPod> pods;
  std::ranges::copy_if(node.pods, std::back_inserter(pods),
                       [&](const SharedPod& other) { return may_go(*other); });
  std::ranges::sort(pods, MoreImportant);
  return pods;
}

std::optional<Preemption> TryNode(const Framework& framework, const ClusterSnapshot& snapshot,
                                  const Cycle& cycle, const Pod& pod, const NodeInfo& node,
                                  MayGo may_go) {
  const std::vector<SharedPod> lesser = ThoseThat(may_go, node);
  if (lesser.empty()) return std::nullopt;
  Trial trial(framework, snapshot, cycle, pod, node.node->meta.name);
  for (const SharedPod& other : lesser) trial.Remove(other);
  if (!trial.Fits()) return std::nullopt;
  Budgets budgets(snapshot.around());
  std::vector<SharedPod> guarded, others;
  for (const SharedPod& other : lesser) {
    (budgets.Take(*other) ? guarded : others).push_back(other);
  }
  Preemption preemption{node.node->meta.name, {}, 0};
  const auto take_back = [&](const std::vector<SharedPod>& pods, int violation) {
    for (const SharedPod& other : pods) {
      trial.Add(other);
      if (trial.Fits()) continue;
      trial.Remove(other);
      preemption.victims.push_back(other);
      preemption.violations += violation;
    }
  };
  take_back(guarded, 1);
  take_back(others, 0);
  std::ranges::sort(preemption.victims, MoreImportant);
  return preemption;
}

std::vector<Preemption> Candidates(const Framework& framework, const ClusterSnapshot& snapshot,
                                   const Pod& pod, const PreemptionOptions& options, MayGo may_go) {
  const Cycle cycle = framework.PreFilter(pod, snapshot);
  std::vector<Preemption> candidates;
  if (!cycle.verdict.fits()) return candidates;
  const auto nodes = static_cast<int64_t>(snapshot.size());
  const auto enough = static_cast<size_t>(
      std::max<int64_t>(nodes * options.min_candidate_percentage / 100, options.min_candidates));
  bool harmless = false;  // there is one that violates no budget
  for (size_t i = 0; i < snapshot.size() && !(harmless && candidates.size() >= enough); ++i) {
    const NodeInfo& node = snapshot.node(i);
    if (framework.Filter(cycle, pod, node).kind != Verdict::Kind::kUnschedulable) continue;
    std::optional<Preemption> preemption = TryNode(framework, snapshot, cycle, pod, node, may_go);
    if (!preemption) continue;
    harmless = harmless || preemption->violations == 0;
    candidates.push_back(*std::move(preemption));
  }
  return candidates;
}

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
      Trial trial(framework_, snapshot_, cycle_, pod_, node.node->meta.name);
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
                                             const PreemptionOptions& options) {
  const auto is_lesser = [&](const Pod& other) { return other.priority < pod.priority; };
  return Candidates(framework, snapshot, pod, options, is_lesser);
}

bool IsGentler(const Preemption& a, const Preemption& b) { return CostOf(a) < CostOf(b); }

std::optional<Preemption> FindPreemption(const Framework& framework,
                                         const ClusterSnapshot& snapshot, const Pod& pod,
                                         const PreemptionOptions& options) {
  std::vector<Preemption> candidates = PreemptionCandidates(framework, snapshot, pod, options);
  const auto best = std::ranges::min_element(candidates, IsGentler);
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
  auto candidates = Candidates(framework, snapshot, pod, {}, may_go);
  std::erase_if(candidates, [](const Preemption& one) { return one.victims.empty(); });
  const auto fewest =
      std::ranges::min_element(candidates, [](const Preemption& a, const Preemption& b) {
        return a.victims.size() != b.victims.size() ? a.victims.size() < b.victims.size()
                                                    : IsGentler(a, b);
      });
  if (fewest == candidates.end()) return std::nullopt;
  return std::move(*fewest);
}

}  // namespace nos::scheduling
