// Accounts for the use of quotas by pods that have a node: bound pods, and pods assumed on a node.
//
//   Ledger ledger;
//   ledger.SetQuotas(quotas);                        // at any time, before pods or after them
//   ledger.SetPod(pod, ChargePartsOf(*pod, node, rules));
//   ledger.balance().used(account);
//   ledger.IsOverQuota(pod->Key());                  // the pod may be evicted
//
// A ResourceClaim counts once however many pods use it: for the oldest of its users, of equally old
// ones for the one with the highest priority. When this pod leaves, the next one is charged.
//
// Quotas may appear, change and vanish at any time: use is kept by namespace, with or without a
// quota in force for it.
//
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "cluster/snapshot.h"
#include "quota/balance.h"
#include "quota/charge.h"
#include "quota/standing.h"

namespace nos::quota {

class Ledger {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  Ledger() = default;
  Ledger(Ledger&&) = default;
  Ledger& operator=(Ledger&&) = default;
  // Replaces the set of quotas. REQUIRES: `quotas` is complete.
  void SetQuotas(std::vector<SharedQuota> quotas);
  // Adds the pod, or replaces its charge.
  void SetPod(const Pod& pod, ChargeParts charge);
  void SetPod(const Pod& pod, Amounts own) { SetPod(pod, ChargeParts{std::move(own), {}}); }
  void RemovePod(const std::string& key);

  const Balance& balance() const { return balance_; }
  // With the claims that are charged to this pod. Null: the ledger does not have the pod.
  const Amounts* ChargeOf(const std::string& pod_key) const;
  // The part that no other pod of the ledger is charged for, now that the pod is about to get a
  // node.
  ChargeParts WithoutOthers(ChargeParts charge, const std::string& pod_key) const;
  // Use that ends when the pod leaves after those for which `gone` is true: a claim counts until
  // its last user has left. Nothing if the ledger does not have the pod.
  Amounts FreedBy(const std::string& pod_key,
                  FunctionRef<bool(const std::string& other)> gone) const;
  // Pods that use a claim of this pod that counts for a resource of `asked`, itself included.
  std::vector<Pod> SharersOf(const std::string& pod_key, const Amounts& asked) const;
  // Pods that use the claim, in the order in which they are charged.
  std::vector<Pod> UsersOf(const std::string& claim) const;
  // True if the ledger has the pod and min of its quota does not cover it; see standing.h.
  bool IsOverQuota(const std::string& pod_key);
  // Pods of an account in the order in which min covers them. The first `in_quota` pods are
  // covered.
  struct Standing {
    std::vector<Pod> pods;
    size_t in_quota = 0;
    std::vector<const Amounts*> charges = {};  // of the pods; valid until the ledger changes
  };
  const Standing& StandingOf(size_t account);
  // Returns and clears the accounts whose standing may have changed: accounts whose pods were added
  // or removed, and accounts that share resources with them (Terms::inherited). SetQuotas clears
  // the set although every standing may change.
  std::set<size_t> TakeChanged() { return std::exchange(changed_, {}); }
  // Visits pods in namespaces without a quota, in no particular order.
  void EachWithoutQuota(FunctionRef<void(const Pod&, const Amounts&)> visit) const;

 private:
  // Creation, priority with the highest first, and key of a pod.
  using Seniority = std::tuple<Time, int64_t, std::string>;
  struct ClaimUser {
    Holder* holder;
    Amounts amounts;  // of the claim, on the user's node
  };
  using ClaimUsers = std::map<Seniority, ClaimUser>;  // the first one is charged

  struct NamespaceUse {
    Amounts used;
    std::unordered_set<Holder*> pods;
  };
  struct Ranked {
    std::optional<StandingOrder> order = {};  // absent: holders are not sorted yet
    std::vector<Holder*> holders = {};
    Standing standing = {};
    bool current = false;                               // true: `standing` is up to date
    std::map<cluster::ResourceId, size_t> shared = {};  // resource to the account that owns its min
  };
  static Seniority SeniorityOf(const cluster::Pod& pod);
  void Join(Holder& holder, ClaimAmounts claims);
  void Leave(const Holder& holder);
  void Count(Holder& pod, int sign);
  void Charge(Holder& holder, const Amounts& amounts, int sign);
  void Rank(size_t account);
  void Order(size_t account);
  void Outdate(size_t account);
  // Standing in a resource of the account's own min that heirs use, too.
  const SharedStanding& Shared(size_t account, cluster::ResourceId resource);
  void EachOf(size_t account, FunctionRef<void(Holder&)> visit) const;

  std::unordered_map<std::string, Holder> pods_;  // by key; Ranked and SharedStanding point into it
  std::unordered_map<std::string, ClaimUsers> claims_;  // by the claim's key
  std::unordered_map<std::string, NamespaceUse> by_namespace_;
  Balance balance_;
  std::vector<Ranked> ranked_;                                               // by account
  std::map<std::pair<size_t, cluster::ResourceId>, SharedStanding> shared_;  // built on first use
  std::set<size_t> changed_;
};

// Ledger of the pods in a snapshot and of those in `pods` whose node the snapshot lacks. Pods on
// missing nodes count, so that every controller arrives at the same use.
Ledger LedgerOf(std::vector<SharedQuota> quotas, const cluster::ClusterSnapshot& snapshot,
                const std::vector<Ledger::Pod>& pods, const ChargeRules& rules);

}  // namespace nos::quota
