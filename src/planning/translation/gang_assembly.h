// Places a gang whose pods depend on each other one pod after the other, as a scheduler does, so
// that every filter sees the pods placed before. The search (search.h) counts capacity for all pods
// at once, without an order. It is faster, and packs better if no filter depends on other pods.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planning/optimize/stages.h"
#include "planning/translation/live_filters.h"
#include "planning/translation/translate.h"

namespace nos::planning {

struct GangAssignment {
  int cls = 0, node = 0;
};

// Places the gang beside those pods of `placed` that have a more urgent level than `below`. Tries
// the topology domains in which the gang may start, those with most capacity first, until one has
// enough. Returns as many pods as fit; empty if that is fewer than the gang lacks. Ignores
// Problem::allowed and asks the filters instead. `looks`: budget of checked pairs of pod and node;
// decremented.
std::vector<GangAssignment> AssembleGang(PlanChecker& checker, const Translation& translation,
                                         const StagedResult& placed, int below, int gang,
                                         GpuStates& states,
                                         const std::function<bool()>& out_of_time, int64_t& looks);

}  // namespace nos::planning
