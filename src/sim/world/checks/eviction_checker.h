// Invariant checker: a scheduler evicts pods only for pending pods of higher priority, or for the
// guaranteed quota of another namespace. Checks the objects in the API server.
//
//   EvictionChecker checker(quotas);   // for each change, quotas.See() is called first
//   checker.See(before, after, now);   // for each change of a pod in the API server
//   for (std::string& problem : checker.TakeProblems()) ...
//
// The scheduler may learn of changes late: a pod that was pending up to kFaultsLinger ago still
// counts.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "sim/world/checks/quota_checker.h"

namespace nos::sim {

class EvictionChecker {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // `quotas` must outlive the object.
  explicit EvictionChecker(const QuotaChecker& quotas) : quotas_(quotas) {}

  // Null `before`: the pod is new; null `after`: it was removed.
  void See(const Pod& before, const Pod& after, Time now);
  std::vector<std::string> TakeProblems();
  // Number of pods that the scheduler has evicted.
  int evictions() const { return evicted_; }

  struct Eviction {
    Time at{};
    std::string pod, preemptor;  // keys; the second is empty if it is not known
    bool for_quota = false;      // and not for a priority
  };
  // The last ones, at most kKept, oldest first.
  const std::deque<Eviction>& last() const { return last_; }

 private:
  static constexpr size_t kKept = 50;
  // A pod that is pending, or was until a short time ago.
  struct Waiting {
    Pod pod;
    Time until = Time::max();
  };

  const QuotaChecker& quotas_;
  std::map<std::string, Waiting> waiting_;  // by uid
  std::vector<std::string> problems_;
  int evicted_ = 0;
  std::deque<Eviction> last_;
};

}  // namespace nos::sim
