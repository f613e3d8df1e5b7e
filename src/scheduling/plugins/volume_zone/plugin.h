// A pod whose claims are bound to volumes of a zone or region runs there.
//
// Semantics: kube-scheduler's VolumeZone. Zones are told by labels of PersistentVolume and node; a
// node without any such label is in every zone.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Codes: "VolumeZoneConflict"; "ClaimNotFound", "ClaimUnbound", "StorageClassNotFound",
// "VolumeNotFound" for the whole cluster.
class VolumeZone final : public PreFilterPlugin, public FilterPlugin {
 public:
  std::string Name() const override { return "VolumeZone"; }
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
