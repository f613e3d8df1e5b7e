// The common part of the filters that look at a pod's volume claims.
#pragma once

#include "cluster/volumes.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

// Volumes are not checked without a cluster context.
class ClaimFilter : public PreFilterPlugin, public FilterPlugin {
 public:
  DependsOn Dependence() const final { return DependsOn::kCluster; }
  bool Concerns(const cluster::Pod& pod) const override { return cluster::UsesClaims(pod); }
  bool ConcernsIn(const cluster::ClusterSnapshot& snapshot, const cluster::Pod& pod) const final {
    return snapshot.ShareContext() != nullptr && Concerns(pod);
  }
};

}  // namespace nos::scheduling
