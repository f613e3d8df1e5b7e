// Which of the pods that wait a plan is to serve: those that their quotas would let in, together
// with those that run and those that are planned for. For pods whose scheduler heeds quotas
// (CapacityScheduling); the others are none of a quota's business.
//
//   for (const auto& [pod, refusal] : LeaveOutRefused(ganged, snapshot, around, frameworks, last))
//     Tell(pod, refusal.Text());
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "controllers/planned_gangs.h"
#include "quota/balance.h"
#include "scheduling/framework_choice.h"

namespace nos::controllers {

// The code of the reason why a pod is not planned for.
inline constexpr std::string_view kRefusedByQuota = "Quota";

using RefusedByQuota = std::vector<std::pair<std::shared_ptr<const cluster::Pod>, quota::Refusal>>;

// Takes them out of `ganged`. Of a gang as many are let in as it lacks, or none: then all of it is
// refused, and stays there with that for its problem. Those whom schedulers have chosen a node for
// come first, then by priority and age; and before all that is borrowed what is guaranteed. Those
// of `last`, by key, come after all others. `snapshot`: what runs, and what slices are kept for.
// `pods`: all that there are.
RefusedByQuota LeaveOutRefused(GangedPods& ganged,
                               const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                               const cluster::ClusterSnapshot& snapshot,
                               const cluster::Surroundings& around,
                               const scheduling::FrameworkChoice& frameworks,
                               const std::set<std::string>& last);

// Keys of those for whom slices are kept although their quotas would not let them in beside those
// whom schedulers have chosen a node for: their schedulers refuse them, and keep what quotas have
// for the others. `snapshot`: what runs.
std::vector<std::string> FindClaimsBeyondQuota(
    const Claims& claims, const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
    const cluster::ClusterSnapshot& snapshot, const cluster::Surroundings& around,
    const scheduling::FrameworkChoice& frameworks);

}  // namespace nos::controllers
