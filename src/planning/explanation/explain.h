// Explains why pods stay pending and finds the smallest change that would help.
//
// Each node contributes one reason: the first obstacle that keeps the pod away from it. The remedy
// is the cheapest change over all nodes that removes every obstacle of a node.
//
// Classes times nodes may be hundreds of millions, so the work is limited to about two seconds, or
// a quarter of a second after the time limit. It is spent level by level, first on reasons, then on
// remedies. When it is exhausted, only a few nodes are checked per class (the reason NotLookedAt
// counts the others), and the class gets no remedy.
#pragma once

#include <functional>
#include <vector>

#include "planning/optimize/stages.h"
#include "planning/plan.h"
#include "planning/translation/translate.h"
#include "scheduling/framework_choice.h"
#include "scheduling/remedies.h"

namespace nos::planning {

struct Explanation {
  // First what no node can change, then obstacles on nodes that could serve the pod, then the
  // others; within each kind the most frequent first.
  std::vector<Reason> reasons;
  scheduling::Remedy remedy;
};

// By class; empty for classes whose pods are all placed. `snapshot`: before the plan.
std::vector<Explanation> ExplainWaiting(const Translation& translation, const StagedResult& result,
                                        const scheduling::FrameworkChoice& frameworks,
                                        GpuStates& states, const cluster::ClusterSnapshot& snapshot,
                                        const std::function<bool()>& out_of_time);

// Why a pod has no class: it does not wait for a node, no node can serve it, or its gang is
// hopeless (pod_classes.h). `gang`: null: a single pod.
Explanation NotPlanned(const cluster::Pod& pod, const Gang* gang);

}  // namespace nos::planning
