#include "planning/checked_search.h"

#include "planning/gangs.h"

namespace nos::planning {

StagedResult SearchAndCheck(PlanChecker& checker, int most_reservations, Translation& translation,
                            GpuStates& states, const std::function<bool()>& out_of_time) {
  int waiting = 0;
  for (const PodClass& cls : translation.problem.classes) waiting += cls.count;
  for (int round = 1;; ++round) {
    StagedResult result =
        SearchWithGangs(translation.problem, states, most_reservations, out_of_time);
    const auto objections = checker.FindObjections(translation, result);
    if (objections.empty()) {
      // What was ruled out on the way might have been possible in another order.
      if (round > 1 && result.draft.placed() < waiting) result.complete = false;
      return result;
    }
    Heed(objections, round, translation);
  }
}

}  // namespace nos::planning
