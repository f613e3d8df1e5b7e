// A pod with scheduling gates is not queued until all gates are removed.
//
// Semantics: kube-scheduler's SchedulingGates.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Code: "SchedulingGated".
class SchedulingGates final : public PreEnqueuePlugin {
 public:
  std::string Name() const override { return "SchedulingGates"; }
  // Only a change of the pod itself removes gates.
  bool MayHelp(const ClusterEvent&, const cluster::Pod&) const override { return false; }
  Verdict PreEnqueue(const cluster::Pod& pod) const override;
};

}  // namespace nos::scheduling
