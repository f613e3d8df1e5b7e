// Who uses how much of which quota, from the pods that have a node: bound, or about to be.
//
//   Ledger ledger;
//   ledger.SetQuotas(quotas);                        // at any time, before pods or after them
//   ledger.SetPod(pod, ChargeOf(*pod, node, rules));
//   ledger.balance().used(account);
//   ledger.IsOverQuota(pod->Key());                  // it may have to give way
//
// Quotas may appear, change and vanish at any time: what pods use is kept by namespace, whether a
// quota is in force there or not. One owner thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
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
  // All that there are.
  void SetQuotas(std::vector<SharedQuota> quotas);
  // Counts the pod so, and no longer as it was counted before.
  void SetPod(const Pod& pod, Amounts charge);
  void RemovePod(const std::string& key);

  const Balance& balance() const { return balance_; }
  // Null: it does not count.
  const Amounts* ChargeOf(const std::string& pod_key) const;
  // Whether it counts and is beyond what its quota's min covers; see standing.h.
  bool IsOverQuota(const std::string& pod_key);
  // Those of the account that count, in the order in which min covers them; the first `in_quota` of
  // them are covered.
  struct Standing {
    std::vector<Pod> pods;
    size_t in_quota = 0;
    std::vector<const Amounts*> charges = {};  // of the pods; valid until the ledger changes
  };
  const Standing& StandingOf(size_t account);
  // The accounts whose standings may be others than when this was last asked: those of pods that
  // came or went, and of others with whom these share (Terms::inherited). After SetQuotas: any.
  std::set<size_t> TakeChanged() { return std::exchange(changed_, {}); }
  // Those that count where no quota is in force, in no particular order.
  void EachWithoutQuota(FunctionRef<void(const Pod&, const Amounts&)> visit) const;

 private:
  struct NamespaceUse {
    Amounts used;
    std::unordered_set<Holder*> pods;
  };
  struct Ranked {
    std::optional<StandingOrder> order = {};  // absent: that of the holders is not known yet
    std::vector<Holder*> holders = {};
    Standing standing = {};
    bool current = false;                               // the standing
    std::map<cluster::ResourceId, size_t> shared = {};  // resources, and whose own they are
  };
  void Count(Holder& pod, int sign);
  void Rank(size_t account);
  void Order(size_t account);
  void Outdate(size_t account);
  // Of what is the account's own and its heirs use, too.
  const SharedStanding& Shared(size_t account, cluster::ResourceId resource);
  void EachOf(size_t account, FunctionRef<void(Holder&)> visit) const;

  std::unordered_map<std::string, Holder> pods_;  // by key; ranked with their accounts
  std::unordered_map<std::string, NamespaceUse> by_namespace_;
  Balance balance_;
  std::vector<Ranked> ranked_;                                               // by account
  std::map<std::pair<size_t, cluster::ResourceId>, SharedStanding> shared_;  // that were asked for
  std::set<size_t> changed_;
};

// With the pods of a snapshot, and with those of `pods` whose nodes it does not have, which count,
// too: whoever asks who uses how much has to come to the same.
Ledger LedgerOf(std::vector<SharedQuota> quotas, const cluster::ClusterSnapshot& snapshot,
                const std::vector<Ledger::Pod>& pods, const ChargeRules& rules);

}  // namespace nos::quota
