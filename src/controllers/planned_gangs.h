// Gangs (gangs.h) as a plan takes them: which of their pods wait, and of how many of the others is
// taken care already.
//
//   const GangedPods ganged = WithGangs(waiting, all, around, claims, now);
//   options.gangs = ganged.gangs;
//   MakePlan(snapshot, ganged.pods, frameworks, options);
//
// A pod is taken care of when it has a node, or a scheduler has chosen one for it, or slices are
// kept for it. Functions of values.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/surroundings.h"
#include "controllers/pending/claims.h"
#include "reconcile/runner.h"
#include "planning/planner.h"

namespace nos::controllers {

struct GangedPods {
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<planning::Gang> gangs;  // of `pods`
};

// `waiting`, of which all are among `all`, and after them what else waits of their gangs: nobody
// may have tried it yet, or it asks for no slices, but the others need it. Pods that are left out
// of planning for now do not count.
GangedPods WithGangs(std::vector<std::shared_ptr<const cluster::Pod>> waiting,
                     const std::vector<std::shared_ptr<const cluster::Pod>>& all,
                     const cluster::Surroundings& around, const Claims& claims, Time now);

// Keeps slices no longer for pods of whose gangs not enough are taken care of. Those for whom a
// scheduler has chosen a node are its business. Returns whether there were any.
bool DropClaimsInVain(const std::vector<std::shared_ptr<const cluster::Pod>>& all,
                      const cluster::Surroundings& around, Claims& claims);

// How a planner's runner watches what says who belongs together, and what quotas there are.
reconcile::RunnerOptions WatchingGangs(reconcile::RunnerOptions options = {});

}  // namespace nos::controllers
