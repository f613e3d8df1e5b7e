// Checks that a node managed by nos has the pod's GPU slices free or can create them by
// repartitioning.
//
// For schedulers that have GPUs partitioned for the pods they place
// (controllers/scheduler/partition_requests.h). Replaces NodeResourcesFit, which leaves these
// resources of such nodes to this plugin. Codes: "InsufficientResource", and "GpusBeingPartitioned"
// while a plan of another component is in progress on the node.
#pragma once

#include <string>

#include "scheduling/plugin.h"

namespace nos::scheduling {

class GpuPartitioning final : public PreFilterPlugin, public FilterPlugin {
 public:
  std::string Name() const override { return "GpuPartitioning"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  bool PartitionsGpus() const override { return true; }
  DependsOn Dependence() const override { return DependsOn::kNodeUsage; }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
};

}  // namespace nos::scheduling
