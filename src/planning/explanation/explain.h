// Why pods are left waiting, and the smallest change that would help.
//
// Each node gives one reason: the first thing that keeps the pod away from it. The remedy is looked
// for the same way: what stands between the pod and each node, the cheapest of all.
//
// Classes times nodes may be hundreds of millions, so the work is bounded: to some two seconds,
// to a quarter of one once the time is up. It is spent level by level, first on reasons, then on
// remedies. Beyond it, only a few nodes are looked at for a class (the reason NotLookedAt counts
// the others), and it gets no remedy.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planning/planner.h"
#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"

namespace nos::planning {

struct Explanation {
  std::vector<Reason> reasons;  // what no node can change, then what keeps nodes that could serve
                                // it, then the others; of each the most frequent first
  std::string remedy;
};

// By class; empty for classes that are placed wholly.
std::vector<Explanation> ExplainWaiting(const Translation& translation, const StagedResult& result,
                                        const scheduling::FrameworkChoice& frameworks,
                                        GpuStates& states,
                                        const std::function<bool()>& out_of_time);

// Why a pod that does not wait for a node was not planned for.
Reason WhyNotPlanned(const cluster::Pod& pod);
// Why no pod of a hopeless gang was (pod_classes.h).
Reason WhyHopeless(const Gang& gang);

}  // namespace nos::planning
