// Properties of pods on which the parts of the scheduler agree.
#pragma once

#include <memory>

#include "cluster/objects.h"

namespace nos::controllers {

// Null: a deleted pod.
inline bool RunsSomewhere(const std::shared_ptr<const cluster::Pod>& pod) {
  return pod != nullptr && !pod->node_name.empty() && !pod->Finished();
}

// Other pods can only make it unschedulable: it has neither a required pod affinity nor a spread
// constraint.
inline bool HasNoPositiveInterPodConstraints(const cluster::Pod& pod) {
  return pod.pod_affinity.required.empty() && pod.spread.empty();
}

}  // namespace nos::controllers
