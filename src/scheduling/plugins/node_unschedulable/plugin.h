// A cordoned node (spec.unschedulable) accepts only pods that tolerate the taint
// node.kubernetes.io/unschedulable:NoSchedule.
//
// Semantics: kube-scheduler's NodeUnschedulable.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "NodeUnschedulable".
class NodeUnschedulable final : public FilterPlugin {
 public:
  std::string Name() const override { return "NodeUnschedulable"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  DependsOn Dependence() const override { return DependsOn::kNodeObject; }
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
};

}  // namespace nos::scheduling
