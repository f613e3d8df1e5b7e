// Which pods have to go so that a more important one fits.
//
//   if (auto preemption = FindPreemption(framework, snapshot, pod, {}))
//     Evict(preemption->victims), Nominate(pod, preemption->node);
//
// Semantics: kube-scheduler's DefaultPreemption. On each node that refuses the pod for what can
// change, all pods of lower priority are taken away; if the pod fits then, as many of them as
// possible are taken back, those first whose PodDisruptionBudgets would be violated, then the more
// important ones. Of all nodes the one is taken with the fewest violations, then the least
// important first victim, the least sum of priorities, the fewest victims, and the youngest. Unlike
// there, candidates are looked at in the order of the nodes' names, so that a run repeats.
//
// A rule may want few victims: then one pod goes alone where that is enough, and else those that
// have the most of what the pod asks for, if these are fewer than the least important ones.
//
// Pure functions.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "scheduling/framework/budgets.h"
#include "scheduling/framework.h"
#include "scheduling/engine/promises.h"

namespace nos::scheduling {

// DefaultPreemptionArgs.
struct PreemptionOptions {
  int min_candidate_percentage = 10;  // of all nodes
  int min_candidates = 100;
};

struct Preemption;

// Pods that are evicted together or not at all, the most important first.
using EvictionUnit = std::vector<std::shared_ptr<const cluster::Pod>>;

// Who may be evicted for one pod, as things are with those that were counted as gone.
class EvictionRule {
 public:
  virtual ~EvictionRule() = default;
  // The pod is to go to this node.
  virtual void LookAt(const cluster::NodeInfo&) {}
  virtual EvictionUnit UnitOf(const std::shared_ptr<const cluster::Pod>& pod) const {
    return {pod};
  }
  virtual bool MayGo(const EvictionUnit& unit) const = 0;
  // It goes, or comes back after all.
  virtual void Count(const EvictionUnit&, bool /*gone*/) {}
  // Whether the pod would be let in if it had room: by its quota.
  virtual bool LetsIn() const { return true; }
  // Further ones, on whatever nodes, without which it would be let in. None: it cannot be. Nothing
  // is counted afterwards that was not before.
  virtual std::optional<std::vector<EvictionUnit>> More(Budgets&) { return std::nullopt; }
  // Whether few victims matter more than unimportant ones.
  virtual bool WantsFewest() const { return false; }
  // Whether there might be room on the node that is looked at when this one goes alone.
  virtual bool MayBeEnough(const EvictionUnit&) const { return true; }
  // How much it has of what the pod asks for, from 0 to 1.
  virtual double WorthOf(const EvictionUnit&) const { return 0; }
  // The nodes to be looked at, in this order, by index; none: all.
  virtual std::optional<std::vector<size_t>> Order(const cluster::ClusterSnapshot&) {
    return std::nullopt;
  }
  // Whether none is better on those of that order from this place on.
  virtual bool IsGood(const Preemption&, size_t /*place*/) const { return false; }
};

// Those that a predicate, which must outlive it, lets go, each for itself.
class EachThat final : public EvictionRule {
 public:
  // `node`: the only one that is looked at, unless it is empty.
  explicit EachThat(FunctionRef<bool(const cluster::Pod&)> may_go, std::string node = "")
      : may_go_(may_go), node_(std::move(node)) {}
  bool MayGo(const EvictionUnit& unit) const override {
    return std::ranges::all_of(unit, [&](const auto& pod) { return may_go_(*pod); });
  }
  std::optional<std::vector<size_t>> Order(const cluster::ClusterSnapshot& snapshot) override {
    if (node_.empty()) return std::nullopt;
    const auto index = snapshot.IndexOf(node_);
    return index ? std::vector{*index} : std::vector<size_t>();
  }

 private:
  const FunctionRef<bool(const cluster::Pod&)> may_go_;
  const std::string node_;
};

struct Preemption {
  std::string node;  // where the pod fits then
  // The most important first. Those that go for a rule's sake may be on other nodes.
  std::vector<std::shared_ptr<const cluster::Pod>> victims;
  int violations = 0;  // of disruption budgets
};

// A scheduler has evicted it, and it takes its time to end. Who ends for another reason may take
// hours, and is not waited for (kube-scheduler 1.34's DefaultPreemption).
bool EndsByPreemption(const cluster::Pod& pod);

// Nobody hears of it any more, and so pods there do not end. Source: the node lifecycle
// controller's taint.
bool IsLost(const cluster::Node& node);

// Why a pod may not preempt; empty: it may. One that has made room already waits for it: its
// victims take their time to end.
std::string WhyNotPreempt(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                          const cluster::Pod& pod);

// None: nothing that may be taken away would help. The surroundings of `snapshot` have the budgets.
// `rule` is left as it was; null: those of lower priority may go. Who was promised a node goes
// before the pod and stays.
std::optional<Preemption> FindPreemption(const Framework& framework,
                                         const cluster::ClusterSnapshot& snapshot,
                                         const cluster::Pod& pod, const PreemptionOptions& options,
                                         EvictionRule* rule = nullptr,
                                         const Promises& promises = {});

// All of which FindPreemption takes the first of the best, in the order of the nodes' names.
std::vector<Preemption> PreemptionCandidates(
    const Framework& framework, const cluster::ClusterSnapshot& snapshot, const cluster::Pod& pod,
    const PreemptionOptions& options, EvictionRule* rule = nullptr, const Promises& promises = {});
// The fewest pods of one node without which the pod fits there, whatever their priorities, of those
// that `may_go`; the least important ones of equally many. Each alone is tried, then each pair, in
// at most some thousand trials; beyond that, and for more, all that may go are taken away and taken
// back as above, on as many nodes as a preemption looks at. None: that would not help, or it fits.
std::optional<Preemption> FindFewest(const Framework& framework,
                                     const cluster::ClusterSnapshot& snapshot,
                                     const cluster::Pod& pod,
                                     FunctionRef<bool(const cluster::Pod&)> may_go);
// Whether `a` does less harm than `b`.
bool IsGentler(const Preemption& a, const Preemption& b);
// The same where few victims matter more than unimportant ones.
bool IsSmaller(const Preemption& a, const Preemption& b);

}  // namespace nos::scheduling
