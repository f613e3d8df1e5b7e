// Where a pod stands on its way to a node.
#pragma once

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

}  // namespace nos::scheduling
