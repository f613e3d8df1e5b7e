// A pod with claims bound to volumes of a zone or region fits only nodes there.
//
// Semantics: kube-scheduler's VolumeZone. Zones are labels of the PersistentVolume and of the node.
// A node without zone and region labels fits all zones.
#pragma once

#include "scheduling/framework/claim_filter.h"

namespace nos::scheduling {

// Codes: "VolumeZoneConflict"; for all nodes: "ClaimNotFound", "ClaimUnbound",
// "StorageClassNotFound", "VolumeNotFound".
class VolumeZone final : public ClaimFilter {
 public:
  std::string Name() const override { return "VolumeZone"; }
  bool Concerns(const cluster::Pod& pod) const override;
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
};

}  // namespace nos::scheduling
