#include "planning/planner.h"

#include <algorithm>
#include <functional>

#include "planning/explanation/explain.h"
#include "planning/optimize/stages.h"
#include "planning/planner/plan_writer.h"
#include "planning/translation/checked_search.h"
#include "planning/translation/translate.h"

namespace nos::planning {
namespace {

// Limit of pods for which slots are kept, and GPUs per such pod.
constexpr int kMaxReservations = 32;
constexpr int kGpusPerReservation = 4;

}  // namespace

Plan MakePlan(const cluster::ClusterSnapshot& snapshot, Pods pending,
              const scheduling::FrameworkChoice& frameworks, const PlanOptions& options) {
  // 1. From Kubernetes objects to integers.
  Translation translation = Translate(snapshot, pending, frameworks, options);
  GpuStates states(translation.problem);
  const std::function<bool()> out_of_time =
      options.out_of_time ? options.out_of_time : [] { return false; };
  states.StopWhen(out_of_time);
  const int gpus = static_cast<int>(translation.problem.gpus.size());
  const int reservations = std::clamp(gpus / kGpusPerReservation, 1, kMaxReservations);
  // 2. Search until all filters accept the plan.
  PlanChecker checker(snapshot, frameworks);
  const StagedResult result =
      SearchAndCheck(checker, reservations, translation, states, out_of_time);
  // 3. Explain the pods left pending. This comes last, because the reasons depend on the final
  //    plan.
  const auto reasons = ExplainWaiting(translation, result, states, out_of_time);
  return WritePlan(translation, result, states, reasons);
}

}  // namespace nos::planning
