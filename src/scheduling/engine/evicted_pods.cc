#include "scheduling/engine/evicted_pods.h"

#include <utility>

#include "scheduling/lost_node.h"

namespace nos::scheduling {

using cluster::NodeInfo;

bool EvictedPods::Set(const std::string& pod_key, bool leaves) {
  return leaves ? leaving_.insert(pod_key).second : leaving_.erase(pod_key) > 0;
}

std::map<size_t, quota::Amounts> EvictedPods::Charges(bool stuck) const {
  std::map<size_t, quota::Amounts> leaving;
  for (const std::string& key : leaving_) {
    const quota::Amounts* charge = charges_.ledger().ChargeOf(key);
    const PlacedPod* placed = cache_.FindPlaced(key);
    if (charge == nullptr || placed == nullptr) continue;
    const NodeInfo* node = cache_.snapshot().Find(placed->node);
    if (!stuck && (node == nullptr || IsLost(*node->node))) continue;
    const auto account = charges_.ledger().balance().AccountOf(placed->pod->meta.ns);
    if (account) leaving[*account].Add(*charge, -1);
  }
  return leaving;
}

// Capacity freed in other quotas is held by the nominations it was freed for. Use in the pod's own
// quota is counted in full.
quota::Balance EvictedPods::Without(quota::Balance balance, const cluster::Pod& pod) const {
  const auto own = balance.AccountOf(pod.meta.ns);
  for (const auto& [account, charges] : Charges(true)) {
    if (account != own) balance.Add(account, charges);
  }
  return balance;
}

}  // namespace nos::scheduling
