// Gangs (gangs.h) as input of a plan: their pending pods, and the number of members that are
// already served.
//
//   const GangedPods ganged = WithGangs(waiting, all, context, reservations, now);
//   options.gangs = ganged.gangs;
//   MakePlan(snapshot, ganged.pods, frameworks, options);
//
// A pod counts as served if it has a node, is nominated to one or has a slice reservation. Pure
// functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/context.h"
#include "controllers/pending/slice_reservations.h"
#include "planning/plan.h"
#include "reconcile/runner.h"

namespace nos::controllers {

struct GangedPods {
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<planning::Gang> gangs;  // indices into `pods`
};

// `pods` is `waiting`, a subset of `all`, followed by the other pending members of their gangs.
// Such a member may not have been tried yet or may request no slice, but the gang needs it. Pods in
// back-off do not count.
GangedPods WithGangs(std::vector<std::shared_ptr<const cluster::Pod>> waiting,
                     const std::vector<std::shared_ptr<const cluster::Pod>>& all,
                     const cluster::ClusterContext& context, const SliceReservations& reservations,
                     Time now);

// Drops slice reservations of gangs with too few served members. Nominated members are left to
// their scheduler. Returns whether any was dropped.
bool DropReservationsOfBrokenGangs(const std::vector<std::shared_ptr<const cluster::Pod>>& all,
                                   const cluster::ClusterContext& context,
                                   SliceReservations& reservations);

// Makes a planner's runner watch the objects that define gangs and quotas, and the claims whose
// devices count in quotas.
reconcile::RunnerOptions WatchingGangs(reconcile::RunnerOptions options = {});

}  // namespace nos::controllers
