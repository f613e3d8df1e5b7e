// Plans within quotas and publishes the reason on pods that their quotas do not admit.
#include <utility>

#include "controllers/partitioner.h"
#include "controllers/pending/assumed.h"

namespace nos::controllers {

AdmittedPlan Partitioner::PlanWithinQuotas(const GangedPods& waiting,
                                           const reconcile::Listers& view,
                                           const cluster::ClusterSnapshot& snapshot,
                                           const planning::PlanOptions& options) {
  const cluster::ClusterContext context =
      view.context == nullptr ? cluster::ClusterContext() : view.context->Collect();
  AdmittedPlan admitted = controllers::PlanWithinQuotas(waiting, *view.pods.Snapshot(), snapshot,
                                                        context, frameworks_, options);
  for (planning::PodOutcome& outcome : std::exchange(admitted.refused, {})) {
    if (!AsksForSlices(*outcome.pod, gives_whole_)) continue;
    events_.verdicts().Add(std::move(outcome), options.now);
  }
  return admitted;
}

}  // namespace nos::controllers
