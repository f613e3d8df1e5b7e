// Explains why pods stay pending: each node contributes one reason, the first obstacle that keeps
// the pod away from it.
//
// Classes times nodes may be hundreds of millions, so the work is limited to about two seconds, or
// a seventh of a second after the time limit. It is spent level by level. When it is exhausted,
// only a few nodes are checked per class (the reason NotLookedAt counts the others).
#pragma once

#include <functional>
#include <vector>

#include "planning/optimize/stages.h"
#include "planning/plan.h"
#include "planning/translation/translate.h"
#include "scheduling/framework_choice.h"
#include "scheduling/remedies.h"

namespace nos::planning {

// By class; empty for classes whose pods are all placed. First what no node can change, then
// obstacles on nodes that could serve the pod, then the others; within each kind the most frequent
// first.
std::vector<std::vector<Reason>> ExplainWaiting(const Translation& translation,
                                                const StagedResult& result, GpuStates& states,
                                                const std::function<bool()>& out_of_time);

struct Explanation {
  std::vector<Reason> reasons;
  scheduling::Remedy remedy;
};

// Why a pod has no class: it does not wait for a node, no node can serve it, or its gang is
// hopeless (pod_classes.h). `gang`: null: a single pod.
Explanation NotPlanned(const cluster::Pod& pod, const Gang* gang);

}  // namespace nos::planning
