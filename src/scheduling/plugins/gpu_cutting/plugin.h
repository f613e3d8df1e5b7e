// A node that nos cuts has a pod's MIG instances free, or can have them cut.
//
// For schedulers that have GPUs cut for the pods they place (controllers/scheduler/cuts.h); it stands in for
// NodeResourcesFit, which leaves these resources of such nodes to it. Codes:
// "InsufficientResource", and "GpusBeingCut" while a plan of somebody else is under way on the
// node.
#pragma once

#include <string>

#include "scheduling/plugin.h"

namespace nos::scheduling {

class GpuCutting final : public PreFilterPlugin, public FilterPlugin {
 public:
  std::string Name() const override { return "GpuCutting"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  bool PartitionsGpus() const override { return true; }
  DependsOn Dependence() const override { return DependsOn::kNodeUsage; }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
};

}  // namespace nos::scheduling
