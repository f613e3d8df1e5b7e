// Claims of pods that are gone, whose allocation was written without an answer
// (dra::DeviceIndex::SetDoubtful). Their devices count as in use, because the write may have been
// stored or may still arrive. Another user of the claim would write the allocation again. Without
// one, the caller has to write it for the pod that is gone (Framework::PostFilter), so that the
// API server shows it and the devices can be released.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"

namespace nos::scheduling {

class DoubtfulClaims {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // Remembers the pod if an allocation for it is in doubt.
  void OnGone(const Pod& pod, const cluster::ClusterSnapshot& snapshot, Time now);
  // Pods for which requests are due. Each comes again until its claims are settled.
  std::vector<Pod> TakeDue(const cluster::ClusterSnapshot& snapshot, Time now);
  std::optional<Time> NextDue() const;

 private:
  struct Gone {
    Pod pod;
    Time due;
  };
  std::map<std::string, Gone> gone_;  // by uid of the pod
};

}  // namespace nos::scheduling
