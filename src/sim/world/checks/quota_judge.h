// Whether a scheduler keeps to elastic quotas, judged by what the API server holds and by plain
// sums: nobody is let in beyond max, or to borrow beyond what all together are guaranteed (what
// others were evicted from is not theirs any more), and who has to go for another namespace's quota
// is of one that uses more than its own min.
//
//   judge.SetQuotas({{"team-a", {"team-a"}, min, max}}, now);   // all there are from now on
//   judge.See(before, after, now);                              // as the API server has pods
//   for (std::string& problem : judge.TakeProblems()) ...
//
// What the scheduler may know late counts for kFaultsLinger: quotas as they were, pods that
// somebody else bound, and pods that are gone.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "quota/amounts.h"

namespace nos::sim {

// Of those drawn for a simulation, no two name one namespace, and nothing is limited but by these.
struct PlainQuota {
  std::string name;
  std::vector<std::string> namespaces;
  quota::Amounts min, max;
};

class QuotaJudge {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  void SetQuotas(std::vector<PlainQuota> quotas, Time now);
  // Somebody who knows of no quotas binds a pod.
  void SeeRival(Time now) { disturbed_ = now; }
  // Null: it was not there before, or is gone.
  void See(const Pod& before, const Pod& after, Time now);
  // Whether what quotas give to the claimant may cost the victim its place. Where nobody has said
  // what quotas there are: if it is in another namespace.
  bool MayTake(const cluster::Pod& victim, const cluster::Pod& claimant, Time now) const;
  std::vector<std::string> TakeProblems();

 private:
  struct Held {
    std::string ns;
    quota::Amounts charge;
    bool leaves = false;  // evicted already
  };
  // One that ended, was evicted or is gone.
  struct Left {
    std::string ns;
    quota::Amounts charge;
    Time when;
  };

  const PlainQuota* QuotaOf(const std::string& ns) const;
  quota::Amount UsedBy(const PlainQuota& quota, cluster::ResourceId resource,
                       bool with_leaving) const;
  // As whoever does not know yet that some have left counts it.
  quota::Amount PerhapsUsedBy(const PlainQuota& quota, cluster::ResourceId resource,
                              Time now) const;
  void JudgeBinding(const cluster::Pod& pod);

  std::vector<PlainQuota> quotas_;
  std::map<std::string, Held> held_;  // by uid
  std::vector<Left> left_;            // until a short time ago
  bool told_ = false;
  Time disturbed_ = Time::min();
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
