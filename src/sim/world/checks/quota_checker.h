// Invariant checker: a scheduler enforces elastic quotas. Checks the objects in the API server with
// plain sums. No namespace exceeds its max, or borrows beyond the sum of all guarantees (pods that
// are being evicted no longer count for their namespace). A pod evicted for the quota of another
// namespace belongs to a namespace that uses more than its own min, or holds nothing that this min
// names.
//
//   checker.SetQuotas({{"team-a", {"team-a"}, min, max}}, now);   // all quotas from now on
//   checker.See(before, after, now);                              // for each change of a pod
//   for (std::string& problem : checker.TakeProblems(now)) ...
//
// The scheduler may learn of changes late: former quotas, pods bound by another scheduler, and
// removed pods count for kFaultsLinger.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "quota/amounts.h"

namespace nos::sim {

inline constexpr Duration kEvictionRepeats = std::chrono::seconds(15);

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
  // The pods without node for which the scheduler keeps a place while it is prepared. They use
  // their quota for MayTake, until the next call.
  void SetReserved(std::vector<Pod> pods) { reserved_ = std::move(pods); }
  // Null `before`: the pod is new; null `after`: it was removed.
  void See(const Pod& before, const Pod& after, Time now);
  // True if the claimant's quota entitles it to evict the victim. Before the first SetQuotas: true
  // if they are in different namespaces.
  bool MayTake(const cluster::Pod& victim, const cluster::Pod& claimant, Time now) const;
  // Problems found up to now. Borrowing too much is one only if no eviction explains it within
  // kEvictionRepeats: the scheduler counts a pod as leaving from its decision, and the first
  // attempt to evict it may fail.
  std::vector<std::string> TakeProblems(Time now);

 private:
  struct Held {
    std::string ns;
    quota::Amounts charge;
    bool leaves = false;  // being evicted
    Time since{};         // bound
  };
  // Borrowing beyond what is idle: a problem unless as much leaves soon.
  struct Excess {
    Time since;
    cluster::ResourceId resource;
    quota::Amount amount;
    std::string problem;
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
  // By pods that were bound moments ago, perhaps after another pod's place was reserved.
  quota::Amount BoundLately(const PlainQuota& quota, cluster::ResourceId resource, Time now) const;
  // The maximum usage from the view of a scheduler, which counts its reservations and may not know
  // yet that some pods have left.
  quota::Amount PerhapsUsedBy(const PlainQuota& quota, cluster::ResourceId resource,
                              Time now) const;
  void CheckBinding(const cluster::Pod& pod, Time now);
  void OnLeaving(const quota::Amounts& charge);

  std::vector<PlainQuota> quotas_;
  std::map<std::string, Held> held_;  // by uid
  std::vector<Pod> reserved_;
  std::vector<Left> left_;  // until a short time ago
  bool quotas_set_ = false;
  Time disturbed_ = Time::min();
  std::vector<Excess> excesses_;
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
