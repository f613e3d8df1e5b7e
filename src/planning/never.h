// Pods that no node can ever serve, although something else refuses them first.
//
//   ExplainNever(snapshot, frameworks, refused_by_quotas);
//
// A higher quota would not help such a pod, so the advice must not be to raise it.
//
// Pure.
#pragma once

#include <vector>

#include "planning/plan.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

// If no node can ever serve the pod of an outcome, the reason for that comes first, and its remedy
// replaces the outcome's own.
void ExplainNever(const cluster::ClusterSnapshot& snapshot,
                  const scheduling::FrameworkChoice& frameworks, std::vector<PodOutcome>& outcomes);

}  // namespace nos::planning
