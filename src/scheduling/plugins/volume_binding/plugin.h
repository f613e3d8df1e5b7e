// Pods run where their volumes can be reached, and claims that wait for their first pod get volumes
// there: one that is there, or one that is made for them.
//
// Semantics: kube-scheduler's VolumeBinding, without the migration of in-tree volumes to CSI and
// without its score (feature gate StorageCapacityScoring, which is off by default).
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Codes: "VolumeOutOfReach", "NoVolumeToBind", "NotEnoughStorage", "VolumeNotFound"; of all nodes:
// "ClaimNotFound", "ClaimLost", "ClaimDeleted", "ClaimOfAnother", "ClaimUnbound"; while binding:
// "WaitsForVolumes", "VolumeBindingFailed", "VolumeBindingTimeout".
//
// Reserve assumes in the snapshot's surroundings what PreBind then writes: volumes get their
// claims, claims to be provisioned the node. A failed write is the caller's to see: it unreserves.
class VolumeBinding final : public PreFilterPlugin,
                            public FilterPlugin,
                            public ReservePlugin,
                            public PreBindPlugin {
 public:
  // `patience`: from the first PreBind until all is bound (bindTimeoutSeconds).
  explicit VolumeBinding(Duration patience = std::chrono::seconds(600)) : patience_(patience) {}

  std::string Name() const override { return "VolumeBinding"; }
  DependsOn Dependence() const override { return DependsOn::kCluster; }
  bool Concerns(const cluster::Pod& pod) const override;
  bool ConcernsIn(const cluster::ClusterSnapshot& snapshot,
                  const cluster::Pod& pod) const override {
    return snapshot.ShareAround() != nullptr && Concerns(pod);
  }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  bool Update(const cluster::Pod& pod, const cluster::Pod& other, bool came,
              const cluster::NodeInfo& node, CycleState& state, TouchDomain touch) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  Verdict Reserve(const cluster::Pod& pod, std::string_view node,
                  cluster::ClusterSnapshot& snapshot, CycleState& state) const override;
  void Unreserve(const cluster::Pod& pod, std::string_view node, cluster::ClusterSnapshot& snapshot,
                 CycleState& state) const override;
  Progress PreBind(const cluster::Pod& pod, std::string_view node,
                   const cluster::ClusterSnapshot& snapshot, Time now,
                   CycleState& state) const override;
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;

 private:
  Duration patience_;
};

}  // namespace nos::scheduling
