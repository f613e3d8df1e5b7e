// Filters nodes that can reach the pod's volumes, and gives claims with WaitForFirstConsumer an
// existing or a new volume there.
//
// Semantics: kube-scheduler's VolumeBinding, without migration of in-tree volumes to CSI and
// without its score (feature gate StorageCapacityScoring, off by default).
#pragma once

#include "scheduling/framework/claim_filter.h"

namespace nos::scheduling {

// Codes: "VolumeOutOfReach", "NoVolumeToBind", "NotEnoughStorage", "VolumeNotFound"; for all nodes:
// "ClaimNotFound", "ClaimLost", "ClaimDeleted", "ClaimOfAnother", "ClaimUnbound"; while binding:
// "WaitsForVolumes", "VolumeBindingFailed", "VolumeBindingTimeout".
//
// Reserve assumes in the snapshot's cluster context the changes that PreBind then writes: volumes
// are bound to claims, and claims to be provisioned select the node. If a write fails, the caller
// must call Unreserve.
class VolumeBinding final : public ClaimFilter, public ReservePlugin, public PreBindPlugin {
 public:
  // `patience`: time from the first PreBind until all volumes are bound (bindTimeoutSeconds).
  explicit VolumeBinding(Duration patience = std::chrono::seconds(600)) : patience_(patience) {}

  std::string Name() const override { return "VolumeBinding"; }
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
