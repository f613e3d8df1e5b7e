// Converts the result of the search, in integers, into a Plan with names, placements and layouts.
#pragma once

#include <vector>

#include "planning/explanation/explain.h"
#include "planning/model/gpu_states.h"
#include "planning/optimize/stages.h"
#include "planning/plan.h"
#include "planning/translation/translate.h"

namespace nos::planning {

// `reasons`: by class of pods, as ExplainWaiting returns them.
Plan WritePlan(const Translation& translation, const StagedResult& result, GpuStates& states,
               const std::vector<std::vector<Reason>>& reasons);

}  // namespace nos::planning
