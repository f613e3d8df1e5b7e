// How the partitioner plans within quotas, and what it says of pods that their quotas would not let
// in (planned_quotas.h).
#include <set>
#include <string>
#include <utility>

#include "controllers/pending/assumed.h"
#include "controllers/partitioner.h"
#include "scheduling/pod_kind.h"

namespace nos::controllers {

namespace {

std::string KindInNamespace(const cluster::Pod& pod) {
  return pod.meta.ns + " " + scheduling::KindOf(pod);
}

}  // namespace

// Pods for which a plan has nothing must not use up what their quota has for others: it is made
// again with these last, until it has something for all that are let in, or nobody new is.
planning::Plan Partitioner::PlanWithinQuotas(const GangedPods& waiting, const reconcile::View& view,
                                             const cluster::ClusterSnapshot& snapshot,
                                             planning::PlanOptions options) {
  std::set<std::string> in_vain;  // pod keys
  const cluster::Surroundings surroundings =
      view.around == nullptr ? cluster::Surroundings() : view.around->Collect();
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
      // Of a gang that was refused its pods are there still, for its reason to be told.
      if (outcome.placed || left_out.contains(outcome.pod->Key())) continue;
      kinds.insert(KindInNamespace(*outcome.pod));
      fresh |= in_vain.insert(outcome.pod->Key()).second;
    }
    for (const auto& [pod, refusal] : refused) {  // a plan has nothing for those that are alike
      if (kinds.contains(KindInNamespace(*pod))) in_vain.insert(pod->Key());
    }
    if (!refused.empty() && fresh && !options.out_of_time()) continue;
    for (const auto& [pod, refusal] : refused) TellOfQuota(pod, refusal, options.now);
    return plan;
  }
}

void Partitioner::TellOfQuota(const Pod& pod, const quota::Refusal& refusal, Time now) {
  if (!AsksForSlices(*pod, gives_whole_)) return;
  planning::PodOutcome outcome;
  outcome.pod = pod;
  outcome.reasons = {{std::string(kRefusedByQuota), refusal.Text(), 0}};
  outcome.remedy = refusal.Remedy();
  telling_.verdicts().Add(std::move(outcome), now);
}

}  // namespace nos::controllers
