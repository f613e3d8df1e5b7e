// Runs a planning controller in the cluster. The leading replica has a reconciler, which is
// replaced when its configuration files change; the other replicas stand by with warm caches.
//
//   return RunPlanningDaemon(flags, {.name = "partitioner", .daemon = config.daemon, ...});
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "cmd/daemon/leader.h"
#include "cmd/daemon/planning_rules.h"
#include "cmd/daemon/process.h"
#include "reconcile/reconciler.h"

namespace nos::cmd {

struct PlanningDaemon {
  using Leads = std::function<bool()>;
  using Make = std::function<std::unique_ptr<reconcile::Reconciler>(const PlanningRules&,
                                                                    const Leads&, Metrics&)>;
  std::string name;  // name of the command
  const DaemonConfig& daemon;
  const LeaderConfig& leader;
  const PlanningFiles& files;
  reconcile::RunnerOptions watches;
  // Constructs the reconciler; all arguments outlive it. It must be able to restore its state from
  // the cluster, because it is replaced on a reload.
  Make make;
};

// Runs until shutdown is requested. Error: the reason why the daemon cannot start.
Status RunPlanningDaemon(const DaemonFlags& flags, const PlanningDaemon& what);

}  // namespace nos::cmd
