// A node takes no more volumes of a CSI driver than the driver says it can attach there.
//
// Semantics: kube-scheduler's NodeVolumeLimits, without the migration of in-tree volumes to CSI:
// volumes of in-tree kinds do not count, nor do claims of a class with an in-tree provisioner.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Codes: "TooManyVolumes"; "ClaimNotFound", "ClaimOfAnother" when it cannot be told.
class NodeVolumeLimits final : public PreFilterPlugin, public FilterPlugin {
 public:
  std::string Name() const override { return "NodeVolumeLimits"; }
  DependsOn Dependence() const override { return DependsOn::kCluster; }
  bool Concerns(const cluster::Pod& pod) const override;
  bool ConcernsIn(const cluster::ClusterSnapshot& snapshot,
                  const cluster::Pod& pod) const override {
    return snapshot.ShareAround() != nullptr && Concerns(pod);
  }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
};

}  // namespace nos::scheduling
