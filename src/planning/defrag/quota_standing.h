// Which running pods exceed the min of their quota. It is computed from the quotas and not read
// from the pods' labels, which tenants may write.
//
//   const QuotaStanding standing(snapshot, frameworks);
//   if (standing.IsOverQuota(*pod)) ...
//
// One thread.
#pragma once

#include <optional>
#include <utility>

#include "cluster/snapshot.h"
#include "quota/ledger.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

class QuotaStanding {
 public:
  // The snapshot as it is now; later changes do not count.
  QuotaStanding(cluster::ClusterSnapshot snapshot, const scheduling::FrameworkChoice& frameworks)
      : snapshot_(std::move(snapshot)), frameworks_(frameworks) {}

  // False also if no quota covers the pod's namespace, or its scheduler enforces none. The first
  // call takes time linear in the number of pods.
  bool IsOverQuota(const cluster::Pod& pod);

 private:
  const cluster::ClusterSnapshot snapshot_;
  const scheduling::FrameworkChoice frameworks_;
  std::optional<quota::Ledger> ledger_;
};

}  // namespace nos::planning
