// Phrases of reasons.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"
#include "scheduling/remedies.h"

namespace nos::planning {

// The slices of the class. `spend` is called with the work done, in steps. The translation must
// outlive the result.
scheduling::SliceDemand DemandOf(
    const Translation& translation, const PodClass& cls,
    std::function<void(int64_t)> spend = [](int64_t) {});

// The holders of the instances in the way of a pod of the class: "pod a/b (3g.20gb@4 of GPU 2),
// other pods".
std::string InTheWayText(const Translation& translation, const StagedResult& result, int cls,
                         const FuturePlace& place);

}  // namespace nos::planning
