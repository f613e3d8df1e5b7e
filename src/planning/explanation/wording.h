// Phrases that reasons and remedies share.
#pragma once

#include <functional>
#include <string>

#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"
#include "scheduling/remedies.h"

namespace nos::planning {

// The slices of the class. `spend` is called with the work done, in steps. The translation must
// outlive the result.
scheduling::SliceDemand DemandOf(
    const Translation& translation, const PodClass& cls,
    std::function<void(int64_t)> spend = [](int64_t) {});

// The pod that holds an instance, in the snapshot or in the plan under construction: "a/b", or ""
// if unknown.
std::string HolderOf(const Translation& translation, const StagedResult& result,
                     const SlotInTheWay& slot);
// True if a pod of the class lacks other resources there even after the pods that hold the
// instances in the way have ended.
bool LacksBeyondHolders(const Translation& translation, const StagedResult& result, int cls,
                        const FuturePlace& place);
// "pod a/b (3g.20gb@4 of GPU 2), other pods".
std::string InTheWayText(const Translation& translation, const StagedResult& result, int cls,
                         const FuturePlace& place);

}  // namespace nos::planning
