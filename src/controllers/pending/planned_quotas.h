// Selects the pending pods that a plan may serve: pods that their quotas would admit in addition to
// running and already planned pods. Applies to pods whose scheduler enforces quotas
// (CapacityScheduling). Other pods always stay.
//
//   PlannedAdmission admission = AdmitByQuota(ganged, pods, snapshot, context, frameworks, last);
//   for (const auto& [pod, refusal] : admission.refused) Report(pod, refusal.Text());
//   options.first = std::move(admission.first);
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
#include "scheduling/reasons.h"

namespace nos::controllers {

// The reason code of pods that are left out of the plan.
inline constexpr std::string_view kRefusedByQuota = scheduling::codes::kQuota;

using RefusedByQuota = std::vector<std::pair<std::shared_ptr<const cluster::Pod>, quota::Refusal>>;

struct PlannedAdmission {
  RefusedByQuota refused;
  // Keys of admitted pods that min covers: capacity goes to them before it goes to pods that borrow
  // and have the same or a higher priority. Otherwise what is reclaimed for them would be lent out
  // again. Empty if there are no such pods.
  std::set<std::string, std::less<>> first;
  // Keys of the pods that min covers: admitted ones, and nominated ones that are not planned for.
  std::set<std::string, std::less<>> covered;
};

// Removes refused pods from `ganged`. A gang is admitted with as many members as it lacks, or
// refused as a whole. A refused gang stays in `ganged` with the refusal as its problem. Guaranteed
// requests come before borrowed ones, except behind a nominated pod of the same quota and of higher
// priority. Within each, nominated pods come first, then others by priority and age. Pods in
// `last`, given by key, come after all others. `snapshot` holds running pods and slice
// reservations, `pods` all pods.
PlannedAdmission AdmitByQuota(GangedPods& ganged,
                              const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                              const cluster::ClusterSnapshot& snapshot,
                              const cluster::ClusterContext& context,
                              const scheduling::FrameworkChoice& frameworks,
                              const std::set<std::string>& last);

// Keys of pods whose slice reservations exceed their quotas once nominated pods are counted. Their
// schedulers would refuse them, because nominated pods have the first right to the quota. The
// keys include pods that borrow and have reservations on nodes for which a pod that min covers is
// nominated. `snapshot` holds running pods.
std::vector<std::string> FindReservationsBeyondQuota(
    const SliceReservations& reservations,
    const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
    const cluster::ClusterSnapshot& snapshot, const cluster::ClusterContext& context,
    const scheduling::FrameworkChoice& frameworks);

}  // namespace nos::controllers
