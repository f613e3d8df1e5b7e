// Why pods are left waiting, and the smallest change that would help.
//
// Each node gives one reason: the first thing that keeps the pod away from it. The remedy is looked
// for the same way: what stands between the pod and each node, the cheapest of all.
#pragma once

#include <string>
#include <vector>

#include "planning/planner.h"
#include "planning/stages.h"
#include "planning/translate.h"

namespace nos::planning {

struct Explanation {
  std::vector<Reason> reasons;  // what no node can change first, then the most frequent
  std::string remedy;
};

// By class; empty for classes that are placed wholly.
std::vector<Explanation> ExplainWaiting(const Translation& translation, const StagedResult& result,
                                        const scheduling::Framework& framework, GpuStates& states);

// Why a pod that does not wait for a node was not planned for.
Reason WhyNotPlanned(const cluster::Pod& pod);

}  // namespace nos::planning
