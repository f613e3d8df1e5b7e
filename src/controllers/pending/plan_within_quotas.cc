#include "controllers/plan_within_quotas.h"

#include <set>
#include <string>
#include <utility>

#include "controllers/pending/awaited_gpus.h"
#include "controllers/pending/planned_quotas.h"
#include "planning/never.h"
#include "planning/planner.h"
#include "scheduling/pod_kind.h"
#include "scheduling/remedies.h"

namespace nos::controllers {
namespace {

std::string KindInNamespace(const cluster::Pod& pod) {
  return pod.meta.ns + " " + scheduling::KindOf(pod);
}

std::vector<planning::PodOutcome> OutcomesOf(const RefusedByQuota& refused,
                                             const cluster::ClusterSnapshot& snapshot,
                                             const scheduling::FrameworkChoice& frameworks) {
  std::vector<planning::PodOutcome> outcomes;
  for (const auto& [pod, refusal] : refused) {
    planning::PodOutcome& outcome = outcomes.emplace_back();
    outcome.pod = pod;
    outcome.reasons = {{std::string(kRefusedByQuota), refusal.Text(), 0}};
    outcome.remedy_code = scheduling::remedies::kRaiseQuota;
    outcome.remedy = refusal.Remedy();
  }
  planning::ExplainNever(snapshot, frameworks, outcomes);
  return outcomes;
}

}  // namespace

AdmittedPlan PlanWithinQuotas(const GangedPods& waiting,
                              const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                              const cluster::ClusterSnapshot& snapshot,
                              const cluster::ClusterContext& context,
                              const scheduling::FrameworkChoice& frameworks,
                              planning::PlanOptions options) {
  std::set<std::string> in_vain;  // pod keys
  while (true) {
    GangedPods admitted = waiting;
    PlannedAdmission admission =
        AdmitByQuota(admitted, pods, snapshot, context, frameworks, in_vain);
    const RefusedByQuota& refused = admission.refused;
    options.gangs = admitted.gangs;
    options.first = std::move(admission.first);
    cluster::ClusterSnapshot rest = snapshot;
    HoldAwaitedGpus(pods, admitted.pods, admission.covered, rest);
    planning::Plan plan = planning::MakePlan(rest, admitted.pods, frameworks, options);
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
    if (!refused.empty() && fresh && !(options.out_of_time && options.out_of_time())) continue;
    return {std::move(plan), std::move(admitted.gangs), OutcomesOf(refused, snapshot, frameworks),
            quota::Balance(quota::QuotasOf(context))};
  }
}

}  // namespace nos::controllers
