// What the partitioner says of pods that their quotas would not let in (planned_quotas.h).
#include "controllers/assumed.h"
#include "controllers/partitioner.h"

namespace nos::controllers {

// A plan was made with it, and had nothing for it.
bool Partitioner::WasOfNoHelp(const cluster::Pod& pod) const {
  const auto found = verdicts().find(pod.Key());
  if (found == verdicts().end() || found->second.placed) return false;
  const auto& reasons = found->second.reasons;
  return reasons.empty() || reasons.front().code != kRefusedByQuota;
}

void Partitioner::LeaveToQuotas(GangedPods& ganged, const cluster::ClusterSnapshot& snapshot,
                                const cluster::Surroundings& around, Time now) {
  const auto of_no_help = [&](const cluster::Pod& pod) { return WasOfNoHelp(pod); };
  for (const auto& [pod, refusal] :
       LeaveOutRefused(ganged, snapshot, around, frameworks_, of_no_help)) {
    if (!AsksForSlices(*pod)) continue;
    planning::PodOutcome outcome;
    outcome.pod = pod;
    outcome.reasons = {{std::string(kRefusedByQuota), refusal.Text(), 0}};
    outcome.remedy = refusal.Remedy();
    telling_.verdicts().Add(std::move(outcome), now);
  }
}

}  // namespace nos::controllers
