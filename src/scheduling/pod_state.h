// Where a pod stands on its way to a node.
#pragma once

#include <algorithm>

#include "cluster/objects.h"

namespace nos::scheduling {

// Waits for a node: not bound, not finished, not being deleted.
inline bool IsPending(const cluster::Pod& pod) {
  return pod.node_name.empty() && pod.phase == "Pending" && !pod.meta.deleted.has_value();
}

// Somebody has yet to lift a scheduling gate: neither the scheduler nor the planner may act.
inline bool IsGated(const cluster::Pod& pod) { return !pod.scheduling_gates.empty(); }

// The scheduler may bind it now.
inline bool IsSchedulable(const cluster::Pod& pod) { return IsPending(pod) && !IsGated(pod); }

// Somebody else sees to where it runs: it is tied to a node by what owns it, or the scheduler makes
// room for it on one.
inline bool IsPlacedElsewhere(const cluster::Pod& pod) {
  const auto ties = [](const cluster::OwnerReference& owner) {
    return owner.kind == "DaemonSet" || owner.kind == "Node";
  };
  return !pod.nominated_node.empty() || std::ranges::any_of(pod.meta.owners, ties);
}

// Cutting GPUs could help it: a planner may plan for it.
inline bool IsPlannable(const cluster::Pod& pod) {
  return IsSchedulable(pod) && !IsPlacedElsewhere(pod);
}

}  // namespace nos::scheduling
