// A pod with host ports fits only a node where no other pod uses the same port and protocol on the
// same address. The wildcard address conflicts with every address.
//
// Semantics: kube-scheduler's NodePorts.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "PortTaken".
class NodePorts final : public PreFilterPlugin, public FilterPlugin {
 public:
  std::string Name() const override { return "NodePorts"; }
  bool MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const override;
  DependsOn Dependence() const override { return DependsOn::kNodeUsage; }
  bool Concerns(const cluster::Pod& pod) const override;
  Outcome PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    CycleState& state) const override;
  Verdict Filter(const CycleState& state, const cluster::Pod& pod,
                 const cluster::NodeInfo& node) const override;
};

}  // namespace nos::scheduling
