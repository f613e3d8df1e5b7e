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

// What owns it starts it on its node, and again there when it ends: a DaemonSet, or the node itself
// (a static pod).
inline bool IsTiedToNode(const cluster::Pod& pod) {
  return std::ranges::any_of(pod.meta.owners, [](const cluster::OwnerReference& owner) {
    return owner.kind == "DaemonSet" || owner.kind == "Node";
  });
}

// Somebody else sees to where it runs: what owns it, or the scheduler makes room for it on a node.
inline bool IsPlacedElsewhere(const cluster::Pod& pod) {
  return !pod.nominated_node.empty() || IsTiedToNode(pod);
}

// Cutting GPUs could help it: a planner may plan for it.
inline bool IsPlannable(const cluster::Pod& pod) {
  return IsSchedulable(pod) && !IsPlacedElsewhere(pod);
}

}  // namespace nos::scheduling
