// Plans within quotas and publishes the reason on pods that their quotas do not admit
// (planned_quotas.h).
#include <set>
#include <string>
#include <utility>

#include "controllers/partitioner.h"
#include "controllers/pending/assumed.h"
#include "scheduling/pod_kind.h"

namespace nos::controllers {

namespace {

std::string KindInNamespace(const cluster::Pod& pod) {
  return pod.meta.ns + " " + scheduling::KindOf(pod);
}

}  // namespace

// Pods that a plan cannot place must not use up quota that other pods could use. The plan is
// therefore repeated with these pods last, until it places all admitted pods or admits no new ones.
planning::Plan Partitioner::PlanWithinQuotas(const GangedPods& waiting,
                                             const reconcile::Listers& view,
                                             const cluster::ClusterSnapshot& snapshot,
                                             planning::PlanOptions options) {
  std::set<std::string> in_vain;  // pod keys
  const cluster::ClusterContext surroundings =
      view.around == nullptr ? cluster::ClusterContext() : view.around->Collect();
  while (true) {
    GangedPods admitted = waiting;
    const RefusedByQuota refused = LeaveOutRefused(admitted, *view.pods.Snapshot(), snapshot,
                                                   surroundings, frameworks_, in_vain);
    options.gangs = admitted.gangs;
    planning::Plan plan = planning::MakePlan(snapshot, admitted.pods, frameworks_, options);
    std::set<std::string> kinds, left_out;
    for (const auto& [pod, refusal] : refused) left_out.insert(pod->Key());
    bool fresh = false;
    for (const planning::PodOutcome& outcome : plan.pods) {
      // The pods of a refused gang are still listed here so that their reason can be published.
      if (outcome.placed || left_out.contains(outcome.pod->Key())) continue;
      kinds.insert(KindInNamespace(*outcome.pod));
      fresh |= in_vain.insert(outcome.pod->Key()).second;
    }
    // A plan cannot place pods of the same kind either.
    for (const auto& [pod, refusal] : refused) {
      if (kinds.contains(KindInNamespace(*pod))) in_vain.insert(pod->Key());
    }
    if (!refused.empty() && fresh && !options.out_of_time()) continue;
    for (const auto& [pod, refusal] : refused) ReportQuotaRefusal(pod, refusal, options.now);
    return plan;
  }
}

void Partitioner::ReportQuotaRefusal(const Pod& pod, const quota::Refusal& refusal, Time now) {
  if (!AsksForSlices(*pod, gives_whole_)) return;
  planning::PodOutcome outcome;
  outcome.pod = pod;
  outcome.reasons = {{std::string(kRefusedByQuota), refusal.Text(), 0}};
  outcome.remedy = refusal.Remedy();
  events_.verdicts().Add(std::move(outcome), now);
}

}  // namespace nos::controllers
