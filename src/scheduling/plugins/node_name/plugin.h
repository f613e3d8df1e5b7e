// A pod with spec.nodeName fits only that node.
//
// Semantics: kube-scheduler's NodeName.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "NodeNameMismatch".
class NodeName final : public PreFilterPlugin, public FilterPlugin {
 public:
  std::string Name() const override { return "NodeName"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  DependsOn Dependence() const override { return DependsOn::kNodeObject; }
  bool Concerns(const cluster::Pod& pod) const override { return !pod.node_name.empty(); }
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
};

}  // namespace nos::scheduling
