// Predicates on the state of a pod before it is bound.
#pragma once

#include <algorithm>

#include "cluster/objects.h"

namespace nos::scheduling {

// The pod needs a node: not bound, not finished, not being deleted.
inline bool IsPending(const cluster::Pod& pod) {
  return pod.node_name.empty() && pod.phase == "Pending" && !pod.meta.deleted.has_value();
}

// The pod has scheduling gates: neither the scheduler nor the planner may act.
inline bool IsGated(const cluster::Pod& pod) { return !pod.scheduling_gates.empty(); }

// The scheduler may bind the pod now.
inline bool IsSchedulable(const cluster::Pod& pod) { return IsPending(pod) && !IsGated(pod); }

// Its owner places the pod on this node and restarts it there: a DaemonSet, or the node itself (a
// static pod).
inline bool IsTiedToNode(const cluster::Pod& pod) {
  return std::ranges::any_of(pod.meta.owners, [](const cluster::OwnerReference& owner) {
    return owner.kind == "DaemonSet" || owner.kind == "Node";
  });
}

// Another component decides where the pod runs: its owner, or the scheduler that nominated a node
// for it.
inline bool IsPlacedElsewhere(const cluster::Pod& pod) {
  return !pod.nominated_node.empty() || IsTiedToNode(pod);
}

// Partitioning GPUs could help the pod, so a planner may plan for it.
inline bool IsPlannable(const cluster::Pod& pod) {
  return IsSchedulable(pod) && !IsPlacedElsewhere(pod);
}

}  // namespace nos::scheduling
