// A plan for the pending pods that their quotas admit, in addition to running and already planned
// pods. Applies to pods whose scheduler enforces quotas (CapacityScheduling).
//
//   AdmittedPlan admitted =
//       PlanWithinQuotas(ganged, pods, snapshot, context, frameworks, options);
//   for (const auto& outcome : admitted.refused) Report(*outcome.pod, outcome.reasons);
#pragma once

#include <memory>
#include <vector>

#include "cluster/snapshot.h"
#include "controllers/planned_gangs.h"
#include "planning/plan.h"
#include "quota/balance.h"
#include "scheduling/framework_choice.h"

namespace nos::controllers {

struct AdmittedPlan {
  planning::Plan plan;
  std::vector<planning::Gang> gangs;  // of the pods of `plan`
  // Pods that their quotas refuse. Members of a refused gang are also in `plan`, without a place.
  std::vector<planning::PodOutcome> refused;
  quota::Balance quotas = {};  // without their use
};

// Pods that a plan cannot place must not use up quota that other pods could use. The plan is
// therefore repeated with these pods last, until it places all admitted pods or admits no new ones.
// `pods`: all pods; `snapshot` holds running pods and slice reservations. Gangs in `options` do not
// count. GPUs for which nominated pods wait that are not planned for are kept for them
// (pending/awaited_gpus.h).
AdmittedPlan PlanWithinQuotas(const GangedPods& waiting,
                              const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                              const cluster::ClusterSnapshot& snapshot,
                              const cluster::ClusterContext& context,
                              const scheduling::FrameworkChoice& frameworks,
                              planning::PlanOptions options);

}  // namespace nos::controllers
