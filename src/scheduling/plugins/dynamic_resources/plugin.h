// Pods that ask for devices by resource claims (spec.resourceClaims) are left to kube-scheduler: to
// bind one without its claims being allocated would leave it stuck on its node.
//
// A gate, and no filter: whoever asks on behalf of kube-scheduler, as planner and extender do,
// hears nothing of it, for there the claims are seen to.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "ResourceClaims".
class DynamicResources final : public PreEnqueuePlugin {
 public:
  std::string Name() const override { return "DynamicResources"; }
  Verdict PreEnqueue(const cluster::Pod& pod) const override;
  // What a pod claims does not change.
  bool MayHelp(const ClusterEvent&, const cluster::Pod&) const override { return false; }
};

}  // namespace nos::scheduling
