// Places for a gang whose pods look at each other: one pod after the other, as a scheduler places
// them, so that every filter sees those before. The search counts room for all pods at once and
// knows no such order; it is faster, and packs better where nobody minds who is beside whom.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "planning/translation/live_filters.h"
#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"

namespace nos::planning {

struct Seating {
  int cls = 0, node = 0;
};

// Beside the pods of `around` that are of more urgent levels than `below`, in each topology domain
// in which the gang may begin until one has room, those of most room first. As many pods as there
// is room for; empty: fewer than the gang lacks. Rows of Problem::allowed are not heeded: filters
// are asked. `looks`: how many pairs of pod and node may still be asked about; counted down.
std::vector<Seating> AssembleGang(PlanChecker& checker, const Translation& translation,
                                  const StagedResult& around, int below, int gang,
                                  GpuStates& states, const std::function<bool()>& out_of_time,
                                  int64_t& looks);

}  // namespace nos::planning
