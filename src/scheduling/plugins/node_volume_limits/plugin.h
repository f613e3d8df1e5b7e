// A node accepts no more volumes of a CSI driver than the limit in its CSINode object.
//
// Semantics: kube-scheduler's NodeVolumeLimits, without migration of in-tree volumes to CSI:
// neither in-tree volumes nor claims whose class has an in-tree provisioner count.
#pragma once

#include "scheduling/framework/claim_filter.h"

namespace nos::scheduling {

// Codes: "TooManyVolumes"; "ClaimNotFound" and "ClaimOfAnother" if the volumes cannot be
// determined.
class NodeVolumeLimits final : public ClaimFilter {
 public:
  std::string Name() const override { return "NodeVolumeLimits"; }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
};

}  // namespace nos::scheduling
