// Schedules one pod after the other in a changing cluster. The cost of a decision follows the
// number of changes, not the size of the cluster.
//
//   Engine engine(catalogue);
//   engine.SetNode(node);                          // from watches, in any order
//   engine.SetPod(pod);
//   const Decision decision = engine.Schedule(framework, pod);
//   if (decision.node != nullptr) engine.Assume(pod, decision.node->node->meta.name);
//
// Decisions equal those of Framework::Schedule on the same snapshot with the result of the last
// Precompute. See Nominate for pods with nominations (kube-scheduler's nominated nodes). For each
// kind of pod (pod_kind.h) the engine caches verdicts and scores of all nodes; it keeps the most
// recently used kinds (kind_tables.h).
//
// Owned by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "quota/charge.h"
#include "quota/ledger.h"
#include "scheduling/engine/cluster_cache.h"
#include "scheduling/engine/evicted_pods.h"
#include "scheduling/engine/kind_tables.h"
#include "scheduling/engine/nominator.h"
#include "scheduling/engine/promises.h"
#include "scheduling/engine/quota_admission.h"
#include "scheduling/engine/quota_charges.h"
#include "scheduling/plugin.h"
#include "scheduling/rehearsal.h"

namespace nos::scheduling {

class Framework;
struct Decision;

class Engine {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // The catalogue and every framework passed to the engine must outlive it.
  explicit Engine(const gpu::Catalogue& catalogue);

  const cluster::ClusterSnapshot& snapshot() const { return cache_.snapshot(); }

  // `call` receives the name of each node that was replaced or whose pods changed. It must not call
  // the engine.
  void OnNodeChange(std::function<void(std::string_view)> call) {
    cache_.OnNodeChange(std::move(call));
  }

  void SetNode(std::shared_ptr<const cluster::Node> node);
  // Keeps the node's pods, in case the node is added again.
  void RemoveNode(const std::string& name);
  // Applies a pod from the watch. A bound pod counts until it is finished. An assumed pod counts
  // until it is seen bound (on any node) or finished, or is forgotten.
  void SetPod(const Pod& pod) { cache_.SetPod(pod); }
  void RemovePod(const std::string& key) { cache_.RemovePod(key); }
  // Changes the cluster context with `change(ClusterContext&)`.
  template <typename Function>
  void ChangeContext(const Function& change) {
    cache_.ChangeContext(change);
  }
  // The same for one object. Without FollowDevices, pods that claim devices are not checked.
  template <typename Function>
  void ChangeContext(const Function& change, std::string_view kind, const std::string& key) {
    cache_.ChangeContext(change, kind, key);
  }
  void FollowDevices(std::shared_ptr<dra::DeviceIndex> devices) {
    cache_.FollowDevices(std::move(devices));
  }

  // Rules for charges to quotas. REQUIRES: no pod was set before.
  void SetChargeRules(const quota::ChargeRules& rules) { charges_.SetRules(rules); }
  const quota::ChargeRules& charge_rules() const { return charges_.rules(); }
  // Charges of bound and assumed pods.
  quota::Ledger& ledger() { return charges_.ledger(); }
  const quota::Ledger& ledger() const { return charges_.ledger(); }
  // Use of quotas as it applies to this pod: includes nominated pods that go before it, as in
  // WithPromises. Excludes pods whose keys are in `left_out`. `on`: the pod's node, if known.
  quota::Balance BalanceFor(const cluster::Pod& pod, const std::set<std::string>& left_out = {},
                            std::string_view on = "") const {
    return admission_.BalanceFor(pod, left_out, on);
  }

  // The same, for finding pods to evict for this pod: also excludes guaranteed nominated pods for
  // which `sees_to_it(key)` says that they evict pods for themselves. `on`: as above.
  quota::Balance BalanceToReclaim(const cluster::Pod& pod, std::set<std::string> left_out,
                                  FunctionRef<bool(const std::string&)> sees_to_it,
                                  std::string_view on = "") const {
    return admission_.BalanceToReclaim(pod, std::move(left_out), sees_to_it, on);
  }
  // Deducts the use of evicted pods of other quotas (SetLeaving).
  quota::Balance WithoutLeaving(quota::Balance balance, const cluster::Pod& pod) const {
    return evicted_.Without(std::move(balance), pod);
  }
  // Why the quota of the pod's namespace refuses the pod now, on this node, or on any node if
  // `node` is null and the pod's charge is equal on all. Absent: admitted, or the framework ignores
  // quotas.
  std::optional<quota::Refusal> WhyNotByQuota(const Framework& framework, const cluster::Pod& pod,
                                              const cluster::NodeInfo* node) const {
    return admission_.WhyNot(framework, pod, node);
  }
  // Marks a pod as evicted, or takes that back. An evicted pod no longer uses capacity that others
  // may borrow.
  void SetLeaving(const std::string& pod_key, bool leaves);

  // Counts the pod as running on the node before the watch shows it bound.
  void Assume(const Pod& pod, const std::string& node) { cache_.Assume(pod, node); }
  // Takes the assumption back. No effect if the pod is no longer assumed.
  void Forget(const std::string& key) { cache_.Forget(key); }
  bool IsAssumed(const std::string& key) const;
  // Runs the reserve plugins. Error: the verdict of the first plugin that refuses; all reservations
  // are then released.
  Verdict Reserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                  CycleState& state) {
    return cache_.Reserve(framework, pod, node, state);
  }
  void Unreserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                 CycleState& state) {
    cache_.Unreserve(framework, pod, node, state);
  }
  // Sets the GPUs of a node to their state after partitioning; see ClusterSnapshot::SetGpus.
  Status SetGpus(const std::string& node, cluster::NodeGpus gpus) {
    return cache_.SetGpus(node, std::move(gpus));
  }

  // Holds capacity on the node for a pending pod. Other pods do not get the capacity that it needs
  // if they have lower priority, if they are not guaranteed by a quota and this pod is, or if they
  // have no quota and this pod has one. An empty `node` removes the nomination. `by_others`:
  // another scheduler serves the pod.
  void Nominate(const Pod& pod, const std::string& node, bool by_others = false);
  // The pod's nominated node, or "".
  std::string NomineeNode(const std::string& pod_key) const { return nominator_.NodeOf(pod_key); }
  // Pods nominated for the node.
  std::vector<Pod> Nominated(std::string_view node) const { return nominator_.On(node); }
  // Pods nominated for the node that go after this pod, which is about to be nominated.
  std::vector<Pod> NominatedBehind(std::string_view node, const cluster::Pod& pod) const {
    return nominator_.Behind(node, pod);
  }
  // True if min of the pod's quota covers the pod, nominated or not. `node`: the pod's node; empty
  // if none is known.
  bool IsGuaranteed(const cluster::Pod& pod, std::string_view node) const {
    return nominator_.IsGuaranteed(pod, node);
  }
  // Nominated pods that go before this pod, by node. Excludes pods whose keys are in `left_out`.
  Promises PromisesFor(const cluster::Pod& pod, const std::set<std::string>& left_out = {}) const {
    return nominator_.AllFirst(pod, left_out);
  }
  // The snapshot with these pods bound to their nodes, for explanations.
  cluster::ClusterSnapshot WithPromises(const cluster::Pod& pod) const;

  // Precomputes the framework's inputs of scores from running and waiting pods. To be called
  // periodically.
  void Precompute(const Framework& framework, Pods waiting);

  // Result of the last Precompute.
  const CycleState& PrecomputedOf(const Framework& framework) const {
    return scheduling::PrecomputedOf(precomputed_, framework);
  }

  // A bound or assumed pod and its node. Null: the pod is neither.
  using Placed = PlacedPod;
  const Placed* FindPlaced(const std::string& pod_key) const { return cache_.FindPlaced(pod_key); }

  // Chooses the best node, preferring the pod's nominated node if it fits. `among`: sorted indices
  // of the only candidates in the snapshot; empty: all nodes. The diagnosis counts other nodes that
  // fit as feasible.
  Decision Schedule(const Framework& framework, const Pod& pod, std::span<const size_t> among = {});

  // Simulates placements and evictions on a copy.
  Rehearsal Rehearse() const { return Rehearse(snapshot()); }
  // The same on another state of the cluster.
  Rehearsal Rehearse(cluster::ClusterSnapshot from) const {
    return {std::move(from), precomputed_};
  }
  // Lowest priority of bound and assumed pods. Absent: there are none.
  std::optional<int32_t> LeastPriority() const { return cache_.LeastPriority(); }
  // Incremented by every change that may free capacity for a pod: everything except added pods.
  uint64_t openings() const { return openings_ + cache_.openings(); }
  // Incremented by every input and decision: equal values imply equal decisions.
  uint64_t changes() const { return changes_ + cache_.changes(); }

  // For tests and metrics: number of kind tables built.
  uint64_t tables_made() const { return tables_.made(); }

 private:
  KindTables tables_;
  QuotaCharges charges_;
  ClusterCache cache_;
  EvictedPods evicted_;
  Nominator nominator_;
  QuotaAdmission admission_;
  std::map<const Framework*, CycleState> precomputed_;
  uint64_t openings_ = 0, changes_ = 0;  // without those of cache_
};

}  // namespace nos::scheduling
