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
  std::set<std::string> gone;
  for (const std::string& key : leaving_) {
    const PlacedPod* placed = cache_.FindPlaced(key);
    if (placed == nullptr) continue;
    const NodeInfo* node = cache_.snapshot().Find(placed->node);
    if (!stuck && (node == nullptr || IsLost(*node->node))) continue;
    const auto account = charges_.ledger().balance().AccountOf(placed->pod->meta.ns);
    const auto is_gone = [&](const std::string& other) { return gone.contains(other); };
    if (account) leaving[*account].Add(charges_.ledger().FreedBy(key, is_gone), -1);
    gone.insert(key);
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
