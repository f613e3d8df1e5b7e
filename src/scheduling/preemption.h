// Finds pods to evict so that a more important pod fits.
//
//   if (auto preemption = FindPreemption(framework, snapshot, pod, {}))
//     Evict(preemption->victims), Nominate(pod, preemption->node);
//
// Semantics are those of kube-scheduler's DefaultPreemption:
//
// 1. On each node that refuses the pod for a reason that can change, remove all pods of lower
//    priority. Skip the node if the pod still does not fit.
// 2. Add back as many pods as possible: first pods whose PodDisruptionBudgets would be violated,
//    then by importance. The remaining pods are the victims.
// 3. Choose the node with the fewest violations, then the least important highest victim, then the
//    lowest sum of priorities, then the fewest victims, then the youngest.
//
// Unlike kube-scheduler, candidate nodes are visited in the order of their names, so that runs are
// reproducible.
//
// If a rule wants few victims (WantsFewest), step 2 first tries to evict a single pod, and then
// pods that have the most of what the pod requests, if these are fewer than the least important
// ones.
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
#include "scheduling/plugin.h"

namespace nos::scheduling {

class Framework;

// The fields of DefaultPreemptionArgs.
struct PreemptionOptions {
  int min_candidate_percentage = 10;  // of all nodes
  int min_candidates = 100;
};

struct Preemption;

// Pods that are evicted together or not at all, most important first.
using EvictionUnit = std::vector<std::shared_ptr<const cluster::Pod>>;

// Decides which pods may be evicted for one pod, given the units that were counted as gone.
class EvictionRule {
 public:
  virtual ~EvictionRule() = default;
  // The following calls are for this node as the pod's node.
  virtual void LookAt(const cluster::NodeInfo&) {}
  virtual EvictionUnit UnitOf(const std::shared_ptr<const cluster::Pod>& pod) const {
    return {pod};
  }
  virtual bool MayGo(const EvictionUnit& unit) const = 0;
  // Counts the unit as evicted, or takes that back.
  virtual void Count(const EvictionUnit&, bool /*gone*/) {}
  // True if the pod's quota admits it, provided that a node has capacity.
  virtual bool LetsIn() const { return true; }
  // Further units, on any nodes, whose eviction makes the quota admit the pod. Absent: no set of
  // units does. Leaves the counted units unchanged.
  virtual std::optional<std::vector<EvictionUnit>> More(Budgets&) { return std::nullopt; }
  // True if few victims matter more than unimportant victims.
  virtual bool WantsFewest() const { return false; }
  // False only if the node given to LookAt certainly has too little capacity after evicting just
  // this unit.
  virtual bool MayBeEnough(const EvictionUnit&) const { return true; }
  // How much of the pod's requests the unit holds, from 0 to 1.
  virtual double WorthOf(const EvictionUnit&) const { return 0; }
  // Indices of the nodes to visit, in this order; absent: all nodes.
  virtual std::optional<std::vector<size_t>> Order(const cluster::ClusterSnapshot&) {
    return std::nullopt;
  }
  // True if no better result can come from nodes at this position of Order or later.
  virtual bool IsGood(const Preemption&, size_t /*place*/) const { return false; }
};

// Allows pods that satisfy a predicate, one by one. The predicate must outlive it.
class EachThat final : public EvictionRule {
 public:
  // `node`: the only candidate node, unless empty.
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
  std::string node;  // where the pod fits after the evictions
  // Most important first. Victims evicted for a quota may be on other nodes.
  std::vector<std::shared_ptr<const cluster::Pod>> victims;
  int violations = 0;  // violated PodDisruptionBudgets
};

// A scheduler evicted the pod and it is terminating. Pods that terminate for other reasons may take
// hours, so they are not waited for (like DefaultPreemption of kube-scheduler 1.34).
bool EndsByPreemption(const cluster::Pod& pod);

// Why a pod may not preempt; empty: it may. A pod that has already preempted waits while its
// victims terminate.
std::string WhyNotPreempt(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                          const cluster::Pod& pod);

// Absent: no allowed eviction helps. Budgets are read from the cluster context of `snapshot`.
// `rule` is left unchanged; null: pods of lower priority may be evicted. `promises`: nominated pods
// that go before the pod and are not evicted.
std::optional<Preemption> FindPreemption(const Framework& framework,
                                         const cluster::ClusterSnapshot& snapshot,
                                         const cluster::Pod& pod, const PreemptionOptions& options,
                                         EvictionRule* rule = nullptr,
                                         const Promises& promises = {});

// All results that FindPreemption chooses the best of, in the order of the nodes' names.
std::vector<Preemption> PreemptionCandidates(
    const Framework& framework, const cluster::ClusterSnapshot& snapshot, const cluster::Pod& pod,
    const PreemptionOptions& options, EvictionRule* rule = nullptr, const Promises& promises = {});
// Finds the smallest set of pods on one node without which the pod fits there, regardless of
// priorities, among pods that `may_go` allows; the least important set of equal size. Tries each
// single pod, then each pair, with a limit of some thousand trials. Beyond the limit, and for
// larger sets, removes all allowed pods and adds them back as above, on as many nodes as a
// preemption visits. Absent: no set helps, or the pod fits already.
std::optional<Preemption> FindFewest(const Framework& framework,
                                     const cluster::ClusterSnapshot& snapshot,
                                     const cluster::Pod& pod,
                                     FunctionRef<bool(const cluster::Pod&)> may_go);
// True if `a` does less harm than `b` by the order of step 3.
bool IsGentler(const Preemption& a, const Preemption& b);
// The same with fewer victims before less important ones.
bool IsSmaller(const Preemption& a, const Preemption& b);

}  // namespace nos::scheduling
