// Finds pods to evict so that a pod gets what its namespace's quota guarantees, or its fair share
// of idle capacity. Victims are pods on any node that run on capacity borrowed by their quotas.
//
//   Reclaim reclaim(engine.ledger(), balance_on, options, unit_of);
//   reclaim.CountGone(ending);                      // already evicted, for any pod
//   if (auto found = reclaim.Find(framework, snapshot, pod)) Evict(found->victims);
//
// quota/entitlement.h has the rules on victims. Steps:
//
// 1. Look for a node with free capacity. Only pods that the quota requires are evicted then.
// 2. Otherwise, on each node, evict as many pods as the node's resources require, with GPUs
//    repartitioned if needed, and as few more on any nodes as the quota requires.
// 3. Choose the plan that violates the fewest disruption budgets, then has the fewest victims, then
//    the least important, then the youngest. Nodes are visited in the order of their least
//    important pod whose eviction alone may be enough, until no better plan can come or there are
//    100 plans.
// 4. If there is no plan for a pod that min covers, also evict pods on its node to which their own
//    quotas guarantee nothing (Entitlement::MayClear), whatever makes them keep the pod away.
// 5. If there is no plan, also evict less important pods of the pod's own quota, on any node, until
//    min covers the pod.
//
// A plan without victims means that terminating pods free enough.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "quota/entitlement.h"
#include "quota/ledger.h"
#include "scheduling/preemption.h"
#include "scheduling/preemption/shortfall.h"
#include "scheduling/quota_plugin.h"

namespace nos::scheduling {

class Reclaim final : public EvictionRule {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  // Returns the pods that must be evicted together with this one, including itself: its gang.
  using UnitOfPod = std::function<EvictionUnit(const Pod&)>;

  // Balance that applies to the pod, without the pod itself, if it runs on `node`; "": on any node.
  using BalanceOn = std::function<quota::Balance(std::string_view node)>;

  // The ledger must outlive this object and not change, as must everything the functions refer to.
  Reclaim(quota::Ledger& ledger, BalanceOn balance_on, const QuotaOptions& options,
          UnitOfPod unit_of);

  // Nominations that go before the pod. Default: none.
  void SetPromises(Promises promises) { promises_ = std::move(promises); }
  // Keys of pods that must not be evicted. Default: none.
  void Spare(std::set<std::string> keys) { spared_ = std::move(keys); }
  // Pods whose deletion ends later may be evicted, which shortens it. Default: none.
  void SetLatestEnd(Time latest_end) { latest_end_ = latest_end; }
  // These pods end in any case and are not in the snapshots passed to Find.
  void CountGone(const std::vector<Pod>& pods);
  // `preferred`: node to use if the pod fits there. REQUIRES: a quota is in force in the pod's
  // namespace.
  std::optional<Preemption> Find(const Framework& framework,
                                 const cluster::ClusterSnapshot& snapshot, const Pod& pod,
                                 std::string_view preferred = "");
  // Counts the plan as executed (pod placed, victims evicted) before the next member of a gang.
  void Carry(const Preemption& found, const cluster::ClusterSnapshot& snapshot, const Pod& pod);

  void LookAt(const cluster::NodeInfo& node) override;
  EvictionUnit UnitOf(const Pod& pod) const override { return WithSharers(pod); }
  bool MayGo(const EvictionUnit& unit) const override;
  void Count(const EvictionUnit& unit, bool gone) override;
  bool LetsIn() const override { return !claim_->WhyNot(); }
  std::optional<std::vector<EvictionUnit>> More(Budgets& budgets) override;
  bool WantsFewest() const override { return true; }
  bool MayBeEnough(const EvictionUnit& unit) const override;
  double WorthOf(const EvictionUnit& unit) const override;
  std::optional<std::vector<size_t>> Order(const cluster::ClusterSnapshot& snapshot) override;
  bool IsGood(const Preemption& found, size_t place) const override;

 private:
  // Pods of one quota that are equal in the resources limited for the pod, youngest last.
  struct Group {
    size_t account;
    std::vector<Pod> pods = {};
    std::vector<const quota::Amounts*> charges = {};
    std::vector<size_t> budgets = {};  // budgets that count these pods
  };
  // Next victim of a group, while pods of the group are counted as gone.
  struct Head {
    const Group* group;
    size_t left;  // pods of the group that are left
    EvictionUnit unit = {};
    quota::Holding holding = {};
  };
  // Pods that may be evicted in the last resort (Entitlement::MayClear).
  struct Clearing {
    bool allowed = false;
    std::set<std::string> here = {};  // keys of the pods on the node given to LookAt
  };
  struct Taken {
    EvictionUnit unit;
    bool violates;  // a PodDisruptionBudget
  };
  // A candidate node, with the least important of its useful victims.
  struct Place {
    size_t node;
    const cluster::Pod* alone;  // whose eviction alone may be enough; null: no pod's is
    const cluster::Pod* least;
  };

  // Keyed by pods of a snapshot.
  using Charges = std::unordered_map<const cluster::Pod*, const quota::Amounts*>;

  // The pod's charge on the node, without claims that other pods are charged for.
  quota::Amounts ChargeOn(const cluster::Node* node) const;
  // Use that ends when the pods leave after those that are gone.
  quota::Amounts FreedBy(const EvictionUnit& unit) const;
  // The pods that leave with this one: its unit, and pods that use the same claims if these have
  // what the pod is charged for.
  EvictionUnit WithSharers(const Pod& pod) const;
  void CountAll(size_t account, const quota::Amounts& charge, int sign);
  quota::Entitlement ClaimIn(const quota::Balance& balance) const;
  Charges ChargesOfThoseThatMayGo() const;
  std::optional<Place> PlaceOn(const cluster::NodeInfo& node, const cluster::ResourceVector& asked,
                               const Charges& may_go) const;
  // Best feasible nodes, one for each amount that the pod may be charged.
  std::vector<const cluster::NodeInfo*> NodesThatFit(const Framework& framework,
                                                     const cluster::ClusterSnapshot& snapshot,
                                                     std::string_view preferred) const;
  std::optional<Preemption> WithRoom(const cluster::NodeInfo& node, Budgets budgets);
  std::optional<Preemption> WithoutRoom(const Framework& framework,
                                        const cluster::ClusterSnapshot& snapshot,
                                        const Budgets& budgets);
  std::optional<Preemption> InPlaceOfItsOwn(const Framework& framework,
                                            const cluster::ClusterSnapshot& snapshot,
                                            Budgets budgets);
  void SpareOwn(const Preemption& found, std::vector<EvictionUnit>& own);
  // Adds the pods on the nodes that Entitlement::MayClear may allow.
  void AddThoseToClear(const cluster::ClusterSnapshot& snapshot, Charges& may_go);
  quota::Holding HoldingOf(const EvictionUnit& unit) const;
  bool IsGone(const EvictionUnit& unit) const;
  bool HasExcess(size_t account) const;
  void Collect(const Budgets& budgets);
  void CollectOf(size_t account, const Budgets& budgets,
                 const std::vector<cluster::ResourceId>& limited);
  bool Advance(Head& head) const;
  std::vector<Head> Heads() const;
  std::optional<std::vector<Taken>> TakeUntilLetIn(Budgets budgets);
  bool MayGoInTurn(const std::vector<Taken>& order);

  quota::Ledger& ledger_;
  const BalanceOn balance_on_;
  quota::Balance balance_;                    // for any node
  quota::Balance settled_;                    // `balance_` without nominated pods
  std::map<size_t, quota::Amounts> counted_;  // by account, in addition to balance_on_
  const QuotaOptions options_;
  const UnitOfPod unit_of_;
  Promises promises_;
  std::set<std::string> spared_;
  Time latest_end_ = Time::max();
  std::map<std::string, Pod> gone_;  // by key
  std::set<std::string> carried_;    // claims that pods of executed plans are charged for
  Pod pod_;
  std::vector<Group> groups_;  // pods that may be evicted for the pod
  std::vector<Place> places_;  // in visiting order
  ResourceShortfall lacks_;    // of the node given to LookAt
  Clearing clearing_;
  std::optional<quota::Entitlement> on_any_;  // the pod's claim on any node; absent before Find
  // Claims of a pod whose charge differs between nodes, keyed by the memory of the nodes' GPUs.
  std::map<quota::GpuWorth, quota::Entitlement> by_worth_;
  quota::Entitlement* claim_ = nullptr;  // the claim that applies to the node given to LookAt
};

// Order of victims if either would do: lower priority first, then younger.
bool IsLessImportant(const cluster::Pod& a, const cluster::Pod& b);

// No claimant with a quota evicts the pod. Its namespace is exempt, or it has no quota and is
// critical to the cluster or restarted by its owner at once on the same node. Tenants can write
// such owners and priorities, so these do not count under a quota.
bool IsExempt(const cluster::Pod& pod, bool has_quota, const QuotaOptions& options);

}  // namespace nos::scheduling
