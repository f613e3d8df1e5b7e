// Invariant checker: a scheduler enforces elastic quotas. Checks the objects in the API server with
// plain sums. No namespace exceeds its max, or borrows beyond the sum of all guarantees (pods that
// are being evicted no longer count for their namespace). A pod evicted for the quota of another
// namespace belongs to a namespace that uses more than its own min.
//
//   judge.SetQuotas({{"team-a", {"team-a"}, min, max}}, now);   // all quotas from now on
//   judge.See(before, after, now);                              // for each change of a pod
//   for (std::string& problem : judge.TakeProblems()) ...
//
// The scheduler may learn of changes late: former quotas, pods bound by another scheduler, and
// removed pods count for kFaultsLinger.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "quota/amounts.h"

namespace nos::sim {

// A quota of a simulation: no two quotas share a namespace, and there are no limits other than
// these.
struct PlainQuota {
  std::string name;
  std::vector<std::string> namespaces;
  quota::Amounts min, max;
};

class QuotaChecker {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  void SetQuotas(std::vector<PlainQuota> quotas, Time now);
  // Records that another scheduler, which ignores quotas, binds a pod.
  void SeeRival(Time now) { disturbed_ = now; }
  // Null `before`: the pod is new; null `after`: it was removed.
  void See(const Pod& before, const Pod& after, Time now);
  // True if the claimant's quota entitles it to evict the victim. Before the first SetQuotas: true
  // if they are in different namespaces.
  bool MayTake(const cluster::Pod& victim, const cluster::Pod& claimant, Time now) const;
  std::vector<std::string> TakeProblems();

 private:
  struct Held {
    std::string ns;
    quota::Amounts charge;
    bool leaves = false;  // being evicted
  };
  // A pod that ended, was evicted or was removed.
  struct Left {
    std::string ns;
    quota::Amounts charge;
    Time when;
  };

  const PlainQuota* QuotaOf(const std::string& ns) const;
  quota::Amount UsedBy(const PlainQuota& quota, cluster::ResourceId resource,
                       bool with_leaving) const;
  // The maximum usage from the view of a component that may not know yet that some pods have left.
  quota::Amount PerhapsUsedBy(const PlainQuota& quota, cluster::ResourceId resource,
                              Time now) const;
  void JudgeBinding(const cluster::Pod& pod);

  std::vector<PlainQuota> quotas_;
  std::map<std::string, Held> held_;  // by uid
  std::vector<Left> left_;            // until a short time ago
  bool quotas_set_ = false;
  Time disturbed_ = Time::min();
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
