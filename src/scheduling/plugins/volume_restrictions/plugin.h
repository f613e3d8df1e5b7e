// Refuses nodes with a conflicting use of a disk that only one node may write, and all nodes while
// another pod uses a claim with ReadWriteOncePod.
//
// Semantics: kube-scheduler's VolumeRestrictions.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Codes: "DiskConflict", "ReadWriteOncePodConflict", "ClaimNotFound".
class VolumeRestrictions final : public PreFilterPlugin, public FilterPlugin {
 public:
  std::string Name() const override { return "VolumeRestrictions"; }
  DependsOn Dependence() const override { return DependsOn::kCluster; }
  bool Concerns(const cluster::Pod& pod) const override;
  bool ConcernsIn(const cluster::ClusterSnapshot& snapshot, const cluster::Pod& pod) const override;
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  bool Update(const cluster::Pod& pod, const cluster::Pod& other, bool came,
              const cluster::NodeInfo& node, CycleState& state, TouchDomain touch) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
};

}  // namespace nos::scheduling
