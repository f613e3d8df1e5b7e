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
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "quota/charge.h"
#include "quota/ledger.h"
#include "scheduling/engine/kind_tables.h"
#include "scheduling/engine/promises.h"
#include "scheduling/framework.h"
#include "scheduling/rehearsal.h"

namespace nos::scheduling {

class Engine {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // The catalogue and every framework passed to the engine must outlive it.
  explicit Engine(const gpu::Catalogue& catalogue);

  const cluster::ClusterSnapshot& snapshot() const { return snapshot_; }

  // `call` receives the name of each node that was replaced or whose pods changed. It must not call
  // the engine.
  void OnNodeChange(std::function<void(std::string_view)> call) { on_node_ = std::move(call); }

  void SetNode(std::shared_ptr<const cluster::Node> node);
  // Keeps the node's pods, in case the node is added again.
  void RemoveNode(const std::string& name);
  // Applies a pod from the watch. A bound pod counts until it is finished. An assumed pod counts
  // until it is seen bound (on any node) or finished, or is forgotten.
  void SetPod(const Pod& pod);
  void RemovePod(const std::string& key);
  // Changes the cluster context with `change(ClusterContext&)`.
  template <typename Function>
  void ChangeContext(Function change) {
    change(snapshot_.ChangeContext());
    ++openings_;
    ++changes_;
    TakeInQuotas();
  }

  // Rules for charges to quotas. REQUIRES: no pod was set before.
  void SetChargeRules(const quota::ChargeRules& rules) { charge_rules_ = rules; }
  const quota::ChargeRules& charge_rules() const { return charge_rules_; }
  // Charges of bound and assumed pods.
  quota::Ledger& ledger() { return ledger_; }
  const quota::Ledger& ledger() const { return ledger_; }
  // Use of quotas as it applies to this pod: includes nominated pods that go before it, as in
  // WithPromises. Excludes pods whose keys are in `left_out`. `on`: the pod's node, if known.
  quota::Balance BalanceFor(const cluster::Pod& pod, const std::set<std::string>& left_out = {},
                            std::string_view on = "") const;

  // The same, for finding pods to evict for this pod: also excludes guaranteed nominated pods for
  // which `sees_to_it(key)` says that they evict pods for themselves. `on`: as above.
  quota::Balance BalanceToReclaim(const cluster::Pod& pod, std::set<std::string> left_out,
                                  FunctionRef<bool(const std::string&)> sees_to_it,
                                  std::string_view on = "") const;
  // Deducts the use of evicted pods of other quotas (SetLeaving).
  quota::Balance WithoutLeaving(quota::Balance balance, const cluster::Pod& pod) const;
  // Why the quota of the pod's namespace refuses the pod now, on this node, or on any node if
  // `node` is null and the pod's charge is equal on all. Absent: admitted, or the framework ignores
  // quotas.
  std::optional<quota::Refusal> WhyNotByQuota(const Framework& framework, const cluster::Pod& pod,
                                              const cluster::NodeInfo* node) const;
  // Marks a pod as evicted, or takes that back. An evicted pod no longer uses capacity that others
  // may borrow.
  void SetLeaving(const std::string& pod_key, bool leaves);

  // Counts the pod as running on the node before the watch shows it bound.
  void Assume(const Pod& pod, const std::string& node);
  // Takes the assumption back. No effect if the pod is no longer assumed.
  void Forget(const std::string& key);
  bool IsAssumed(const std::string& key) const;
  // Runs the reserve plugins. Error: the verdict of the first plugin that refuses; all reservations
  // are then released.
  Verdict Reserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                  CycleState& state);
  void Unreserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                 CycleState& state);
  // Sets the GPUs of a node to their state after partitioning; see ClusterSnapshot::SetGpus.
  Status SetGpus(const std::string& node, cluster::NodeGpus gpus);

  // Holds capacity on the node for a pending pod. Other pods do not get the capacity that it needs
  // if they have lower priority, if they are not guaranteed by a quota and this pod is, or if they
  // have no quota and this pod has one. An empty `node` removes the nomination. `by_others`:
  // another scheduler serves the pod.
  void Nominate(const Pod& pod, const std::string& node, bool by_others = false);
  // The pod's nominated node, or "".
  std::string NomineeNode(const std::string& pod_key) const;
  // Pods nominated for the node.
  std::vector<Pod> Nominated(std::string_view node) const;
  // Pods nominated for the node that go after this pod, which is about to be nominated.
  std::vector<Pod> NominatedBehind(std::string_view node, const cluster::Pod& pod) const;
  // Nominated pods that go before this pod, by node. Excludes pods whose keys are in `left_out`.
  Promises PromisesFor(const cluster::Pod& pod, const std::set<std::string>& left_out = {}) const;
  // The snapshot with these pods bound to their nodes, for explanations.
  cluster::ClusterSnapshot WithPromises(const cluster::Pod& pod) const;

  // Precomputes the framework's inputs of scores from running and waiting pods. To be called
  // periodically.
  void Precompute(const Framework& framework, Pods waiting);

  // Result of the last Precompute.
  const CycleState& LearntOf(const Framework& framework) const {
    return scheduling::LearntOf(precomputed_, framework);
  }

  // A bound or assumed pod and its node. Null: the pod is neither.
  struct Placed {
    Pod pod;
    std::string node;
    bool assumed = false;
  };
  const Placed* FindPlaced(const std::string& pod_key) const;

  // Chooses the best node, preferring the pod's nominated node if it fits. `among`: sorted indices
  // of the only candidates in the snapshot; empty: all nodes. The diagnosis counts other nodes that
  // fit as feasible.
  Decision Schedule(const Framework& framework, const Pod& pod, std::span<const size_t> among = {});

  // Simulates placements and evictions on a copy.
  Rehearsal Rehearse() const { return Rehearse(snapshot_); }
  // The same on another state of the cluster.
  Rehearsal Rehearse(cluster::ClusterSnapshot from) const {
    return {std::move(from), precomputed_};
  }
  // Lowest priority of bound and assumed pods. Absent: there are none.
  std::optional<int32_t> LeastPriority() const;
  // Incremented by every change that may free capacity for a pod: everything except added pods.
  uint64_t openings() const { return openings_; }
  // Incremented by every input and decision: equal values imply equal decisions.
  uint64_t changes() const { return changes_; }

  // For tests and metrics: number of kind tables built.
  uint64_t tables_made() const { return tables_.made(); }

 private:
  enum class QuotaStanding { kNone, kCovered, kGuaranteed };  // kNone: the pod has no quota
  struct Promise {
    Pod pod;
    std::string key;
    uint64_t number;                       // order of nominations; 0: read from the API server
    std::optional<quota::Amounts> charge;  // on the node; valid after Judged()
    QuotaStanding standing;                // valid after Judged(), for pods with a quota
    bool by_others;
  };
  using PromisesByNode = std::map<std::string, std::vector<Promise>, std::less<>>;

  void Bind(const Pod& pod, const std::string& node);
  void Unbind(const cluster::Pod& pod, const std::string& node);
  void Touch(std::string_view node) const;
  void Note(std::string_view node, Pod pod, bool came);
  void CountPriority(int32_t priority, int sign);
  quota::Amounts ChargeOn(const cluster::Pod& pod, std::string_view node) const;
  quota::Amounts PromisedBefore(const cluster::Pod& pod) const;
  QuotaStanding Judge(const cluster::Pod& pod, size_t account, const quota::Amounts& charge,
                      const quota::Amounts& before) const;
  // `before`: cache of PromisedBefore(pod), which is equal for all nodes.
  QuotaStanding StandingOf(const cluster::Pod& pod, std::string_view node,
                           std::optional<quota::Amounts>& before) const;
  bool IsGuaranteed(const cluster::Pod& pod, std::string_view node = "") const;
  const PromisesByNode& Judged() const;
  void JudgeAnew(const cluster::Pod& pod);
  void ChargeAnew(std::string_view node);
  // Charges of evicted pods by account, negative. `stuck`: also pods on lost nodes, which may never
  // terminate.
  std::map<size_t, quota::Amounts> Leaving(bool stuck) const;
  bool GoesFirst(const Promise& other, const cluster::Pod& pod, QuotaStanding own,
                 bool is_promised) const;
  // Pods nominated for the node that go before this pod.
  std::vector<Pod> FirstOn(std::string_view node, const cluster::Pod& pod,
                           std::optional<quota::Amounts>& before) const;
  std::optional<Barred> WhyKept(const Pod& pod, size_t node, KindTable& table,
                                std::optional<quota::Amounts>& before) const;
  Decision ScheduleBy(const Framework& framework, const Pod& pod, std::span<const size_t> among,
                      FunctionRef<std::optional<Barred>(size_t, KindTable&)> why_barred);
  void TakeInQuotas();
  void Count(const Pod& pod, const std::string& node);

  cluster::ClusterSnapshot snapshot_;
  std::function<void(std::string_view)> on_node_;
  quota::Ledger ledger_;
  quota::ChargeRules charge_rules_;
  cluster::Table<cluster::ElasticQuota> quotas_, composite_quotas_;  // as passed to the ledger
  KindTables tables_;
  std::map<const Framework*, CycleState> precomputed_;
  // By pod key; includes pods on nodes that are not in the snapshot.
  std::unordered_map<std::string, Placed> placed_;
  std::unordered_map<std::string, std::set<std::string>> homeless_;  // node -> pod keys
  std::set<std::string> leaving_;                                    // pod keys
  mutable PromisesByNode nominated_;
  mutable bool judged_ = true;  // charges and standings in nominated_ are up to date
  uint64_t promises_made_ = 0;
  std::unordered_map<std::string, std::string> nominations_;  // pod key -> node
  std::map<int32_t, size_t> priorities_;  // number of pods in placed_ by priority
  uint64_t openings_ = 0, changes_ = 0;
};

}  // namespace nos::scheduling
