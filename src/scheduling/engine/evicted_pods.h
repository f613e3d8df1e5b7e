// Pods that are evicted but still run, and the use of quotas that ends with them.
//
//   EvictedPods evicted(cache, charges);
//   evicted.Set("team-a/p1", true);
//   evicted.Charges(false);             // {{account of team-a, -40 GB}}
//
// The constructor's arguments must outlive it. Owned by one thread.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "scheduling/engine/cluster_cache.h"
#include "scheduling/engine/quota_charges.h"

namespace nos::scheduling {

class EvictedPods {
 public:
  EvictedPods(const ClusterCache& cache, const QuotaCharges& charges)
      : cache_(cache), charges_(charges) {}

  // Marks a pod as evicted, or takes that back. False: nothing changed.
  bool Set(const std::string& pod_key, bool leaves);
  bool empty() const { return leaving_.empty(); }
  // Charges of evicted pods by account, negative. `stuck`: also pods on lost nodes, which may never
  // terminate.
  std::map<size_t, quota::Amounts> Charges(bool stuck) const;
  // Deducts from the balance the use of evicted pods of quotas other than this pod's.
  quota::Balance Without(quota::Balance balance, const cluster::Pod& pod) const;

 private:
  const ClusterCache& cache_;
  const QuotaCharges& charges_;
  std::set<std::string> leaving_;  // pod keys
};

}  // namespace nos::scheduling
