// Whether a scheduler evicts pods only for more important ones that wait, or for what a quota
// guarantees to another namespace, judged by what the API server holds.
//
//   EvictionJudge judge(quotas);            // that see the same pods, and each before this one
//   judge.See(before, after, now);          // as the API server has pods
//   for (std::string& problem : judge.TakeProblems()) ...
//
// What the scheduler may know late counts for kFaultsLinger: a pod that waited until then.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "sim/world/checks/quota_judge.h"

namespace nos::sim {

class EvictionJudge {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // `quotas` must outlive it.
  explicit EvictionJudge(const QuotaJudge& quotas) : quotas_(quotas) {}

  // Null: it was not there before, or is gone.
  void See(const Pod& before, const Pod& after, Time now);
  std::vector<std::string> TakeProblems();

 private:
  // One that waits, or did so until a short time ago.
  struct Waiting {
    Pod pod;
    Time until = Time::max();
  };

  const QuotaJudge& quotas_;
  std::map<std::string, Waiting> waiting_;  // by uid
  std::vector<std::string> problems_;
};

}  // namespace nos::sim
