// Phrases that reasons and remedies share.
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

// The pod that holds an instance, in the snapshot or in the plan under construction. It names no
// text, because remedies look for the holders on every node.
struct Holder {
  const std::string* key = nullptr;  // of a pod of the snapshot; null: none, or unknown
  int planned = -1;                  // index into the pods of the draft; -1: none

  bool known() const { return key != nullptr || planned >= 0; }
};
// Pods of both classes are members of one gang, so they do not wait for each other's end.
bool IsMate(const Translation& translation, int a, int b);
// "a/b", or "" if unknown.
std::string KeyOf(const Translation& translation, const StagedResult& result, const Holder& holder);
// Different holders of the instances in the way; each unknown one counts.
std::vector<Holder> HoldersOf(const Translation& translation, const StagedResult& result,
                              const FuturePlace& place);
// True if a pod of the class lacks other resources there even after `holders`, the pods that hold
// the instances in the way, have ended.
bool LacksBeyondHolders(const Translation& translation, const StagedResult& result, int cls,
                        const FuturePlace& place, const std::vector<Holder>& holders);
// "pod a/b (3g.20gb@4 of GPU 2), other pods".
std::string InTheWayText(const Translation& translation, const StagedResult& result, int cls,
                         const FuturePlace& place);

}  // namespace nos::planning
