// Leaves pods that request devices through ResourceClaims (spec.resourceClaims) to kube-scheduler.
// nos does not allocate claims, and a pod bound without allocated claims never starts.
//
// The plugin is a pre-enqueue gate and no filter. The planner and the extender act for
// kube-scheduler, which allocates claims, so the plugin does not affect them.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "ResourceClaims".
class DynamicResources final : public PreEnqueuePlugin {
 public:
  std::string Name() const override { return "DynamicResources"; }
  Verdict PreEnqueue(const cluster::Pod& pod) const override;
  // The claims of a pod are immutable.
  bool MayHelp(const ClusterEvent&, const cluster::Pod&) const override { return false; }
};

}  // namespace nos::scheduling
