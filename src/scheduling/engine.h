// Decides for one pod after the other, in a cluster that changes, at the cost of what changed.
//
//   Engine engine(catalogue);
//   engine.SetNode(node);                          // what the watches say, in any order
//   engine.SetPod(pod);
//   const Decision decision = engine.Schedule(framework, pod);
//   if (decision.node != nullptr) engine.Assume(pod, decision.node->node->meta.name);
//
// It decides what Framework::Schedule decides of the same snapshot with what was learnt last; of
// pods with nominations (kube-scheduler's nominated nodes) see Nominate. For each kind of pod
// (pod_kind.h) it keeps the verdicts and scores of all nodes, for as many kinds as were in use
// lately (kind_tables.h).
//
// One owner thread.
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
#include "scheduling/framework.h"
#include "scheduling/engine/kind_tables.h"
#include "scheduling/engine/promises.h"
#include "scheduling/rehearsal.h"

namespace nos::scheduling {

class Engine {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // The catalogue must outlive it, and so must every framework that it is given.
  explicit Engine(const gpu::Catalogue& catalogue);

  const cluster::ClusterSnapshot& snapshot() const { return snapshot_; }

  // `call` is told the name of each node that is another one from then on, or on which something
  // is. It may not ask the engine.
  void OnNodeChange(std::function<void(std::string_view)> call) { on_node_ = std::move(call); }

  void SetNode(std::shared_ptr<const cluster::Node> node);
  // Its pods are remembered for the case that it comes back.
  void RemoveNode(const std::string& name);
  // As the watch shows it: one that is bound counts until it is finished. One that is assumed
  // counts on, until it is shown bound, wherever that is, or finished, or is forgotten.
  void SetPod(const Pod& pod);
  void RemovePod(const std::string& key);
  // Changes the surroundings by `change(Surroundings&)`.
  template <typename Function>
  void ChangeAround(Function change) {
    change(snapshot_.ChangeAround());
    ++openings_;
    ++changes_;
    TakeInQuotas();
  }

  // What pods count for in quotas; before any pod is told.
  void SetChargeRules(const quota::ChargeRules& rules) { charge_rules_ = rules; }
  const quota::ChargeRules& charge_rules() const { return charge_rules_; }
  // Of those that are bound or assumed.
  quota::Ledger& ledger() { return ledger_; }
  const quota::Ledger& ledger() const { return ledger_; }
  // What is used of quotas, as this pod has to see it: with what others that go before it were
  // promised, as WithPromises has them. Without those that `left_out` names, by key. `on`: the node
  // that it is to go to, if that is known.
  quota::Balance BalanceFor(const cluster::Pod& pod, const std::set<std::string>& left_out = {},
                            std::string_view on = "") const;

  // The same, to find out who has to go for the pod: without what is guaranteed to others that were
  // promised something and of which `sees_to_it(key)` says that they will see to that themselves.
  // `on`: as above.
  quota::Balance BalanceToReclaim(const cluster::Pod& pod, std::set<std::string> left_out,
                                  FunctionRef<bool(const std::string&)> sees_to_it,
                                  std::string_view on = "") const;
  // A balance without what others of other quotas use who had to leave (SetLeaving).
  quota::Balance WithoutLeaving(quota::Balance balance, const cluster::Pod& pod) const;
  // Why the quota of the pod's namespace, if the framework heeds quotas, does not let it in now, on
  // this node or, if it is null and all are alike to the pod, anywhere.
  std::optional<quota::Refusal> WhyNotByQuota(const Framework& framework, const cluster::Pod& pod,
                                              const cluster::NodeInfo* node) const;
  // It was evicted, or is no more so: what others may borrow it does not use any more.
  void SetLeaving(const std::string& pod_key, bool leaves);

  // Counts a pod as running on the node before the watch shows it bound.
  void Assume(const Pod& pod, const std::string& node);
  // Takes the assumption back; nothing happens when it is no longer one.
  void Forget(const std::string& key);
  bool IsAssumed(const std::string& key) const;
  // Reserves or unreserves with every plugin that does. Error: the verdict of the first that
  // refuses; then nothing stays reserved.
  Verdict Reserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                  CycleState& state);
  void Unreserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                 CycleState& state);
  // The GPUs of a node, as they will be cut; see ClusterSnapshot::SetGpus.
  Status SetGpus(const std::string& node, cluster::NodeGpus gpus);

  // The pod, which waits, is to get its place there: pods of lower priority find no room that it
  // needs, as if it ran there already; nor, if its quota guarantees it, do those that none
  // guarantees, and if it has a quota, those that have none. An empty node takes that back.
  // `by_others`: another scheduler serves it.
  void Nominate(const Pod& pod, const std::string& node, bool by_others = false);
  // Where, or "".
  std::string NomineeNode(const std::string& pod_key) const;
  // Those nominated for the node.
  std::vector<Pod> Nominated(std::string_view node) const;
  // Those nominated for the node that go after this pod, which is about to be.
  std::vector<Pod> NominatedBehind(std::string_view node, const cluster::Pod& pod) const;
  // Who was promised what and goes before the pod. Without those that `left_out` names, by key.
  Promises PromisesFor(const cluster::Pod& pod, const std::set<std::string>& left_out = {}) const;
  // The snapshot with all of them, to tell people of.
  cluster::ClusterSnapshot WithPromises(const cluster::Pod& pod) const;

  // The framework's scores learn from all pods that run and those that wait. To be called now and
  // then.
  void Learn(const Framework& framework, Pods waiting);

  // What it learnt last.
  const CycleState& LearntOf(const Framework& framework) const {
    return scheduling::LearntOf(learnt_, framework);
  }

  // One that is bound or assumed, and where. Null: it is neither.
  struct Placed {
    Pod pod;
    std::string node;
    bool assumed = false;
  };
  const Placed* FindPlaced(const std::string& pod_key) const;

  // The best node for it; that which it is nominated for, if it fits there. `among`: only of these,
  // by their sorted indices in the snapshot; empty: of all. The diagnosis counts the others that
  // would do as feasible.
  Decision Schedule(const Framework& framework, const Pod& pod, std::span<const size_t> among = {});

  // To try what happens if pods are placed or go.
  Rehearsal Rehearse() const { return Rehearse(snapshot_); }
  // The same from another state of the cluster.
  Rehearsal Rehearse(cluster::ClusterSnapshot from) const { return {std::move(from), learnt_}; }
  // The lowest priority of those that are bound or assumed. None: there are none.
  std::optional<int32_t> LeastPriority() const;
  // Grows with all that may make room for pods to which others can only be in the way: not when
  // pods come.
  uint64_t openings() const { return openings_; }
  // Grows with all that is told or decided: between two that are equal the same is decided of the
  // same.
  uint64_t changes() const { return changes_; }

  // For tests and metrics: tables made since the beginning.
  uint64_t tables_made() const { return tables_.made(); }

 private:
  enum class QuotaStanding { kNone, kCovered, kGuaranteed };  // none: it has no quota
  struct Promise {
    Pod pod;
    std::string key;
    uint64_t number;  // in the order of promises; 0: of those that the API server told
    std::optional<quota::Amounts> charge;  // on the node; it and the standing as of Judged
    QuotaStanding standing;                // and of those that have a quota
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
  // `before`: what was promised before it, once that is known; the same for all nodes.
  QuotaStanding StandingOf(const cluster::Pod& pod, std::string_view node,
                           std::optional<quota::Amounts>& before) const;
  bool IsGuaranteed(const cluster::Pod& pod, std::string_view node = "") const;
  const PromisesByNode& Judged() const;
  void JudgeAnew(const cluster::Pod& pod);
  void ChargeAnew(std::string_view node);
  // What those of the accounts that are on their way out count for, negative. `stuck`: those, too,
  // that nobody knows to end ever, for their nodes are lost.
  std::map<size_t, quota::Amounts> Leaving(bool stuck) const;
  bool GoesFirst(const Promise& other, const cluster::Pod& pod, QuotaStanding own,
                 bool is_promised) const;
  // Who was promised room on the node and goes before this pod.
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
  cluster::Table<cluster::ElasticQuota> quotas_, composite_quotas_;  // that the ledger has
  KindTables tables_;
  std::map<const Framework*, CycleState> learnt_;
  std::unordered_map<std::string, Placed> placed_;  // by pod key; also on nodes that are not there
  std::unordered_map<std::string, std::set<std::string>> homeless_;  // node -> pod keys
  std::set<std::string> leaving_;                                    // pod keys
  mutable PromisesByNode nominated_;
  mutable bool judged_ = true;  // what nominated_ says of quotas is so now
  uint64_t promises_made_ = 0;
  std::unordered_map<std::string, std::string> nominations_;  // pod key -> node
  std::map<int32_t, size_t> priorities_;                      // of placed_: how many have it
  uint64_t openings_ = 0, changes_ = 0;
};

}  // namespace nos::scheduling
