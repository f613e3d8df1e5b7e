// Who uses how much of which quota, from the pods that have a node: bound, or about to be.
//
//   Ledger ledger;
//   ledger.SetQuotas(quotas);                        // at any time, before pods or after them
//   ledger.SetPod("team-a/train-0", "team-a", ChargeOf(pod, node, rules));
//   ledger.balance().used(account);
//
// Quotas may appear, change and vanish at any time: what pods use is kept by namespace, whether a
// quota is in force there or not. One owner thread.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quota/balance.h"

namespace nos::quota {

class Ledger {
 public:
  // All that there are.
  void SetQuotas(std::vector<SharedQuota> quotas);
  // Counts the pod so, and no longer as it was counted before.
  void SetPod(const std::string& key, std::string_view ns, Amounts charge);
  void RemovePod(const std::string& key);

  const Balance& balance() const { return balance_; }
  // Null: it does not count.
  const Amounts* ChargeOf(const std::string& pod_key) const;
  // Of all pods that count there.
  Amounts UsedIn(std::string_view ns) const;

 private:
  struct Entry {
    std::string ns;
    Amounts charge;
  };
  void Count(const Entry& entry, int sign);

  std::unordered_map<std::string, Entry> pods_;
  std::unordered_map<std::string, Amounts> by_namespace_;
  Balance balance_;
};

}  // namespace nos::quota
