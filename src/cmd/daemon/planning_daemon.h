// How those that plan run in the cluster: the replica that leads has a reconciler, made anew when
// the files that it goes by change; the others stand by with warm caches.
//
//   return RunPlanningDaemon(flags, {.name = "partitioner", .daemon = config.daemon, ...});
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/metrics.h"
#include "cmd/daemon/process.h"
#include "cmd/daemon/leader.h"
#include "cmd/daemon/planning_rules.h"
#include "reconcile/reconciler.h"

namespace nos::cmd {

struct PlanningDaemon {
  using Leads = std::function<bool()>;
  using Make = std::function<std::unique_ptr<reconcile::Reconciler>(const PlanningRules&,
                                                                      const Leads&, Metrics&)>;
  std::string name;  // of the command
  const DaemonConfig& daemon;
  const LeaderConfig& leader;
  const PlanningFiles& files;
  reconcile::RunnerOptions watches;
  // Makes the reconciler; all that it is given outlives it. What it remembers can be told from the
  // cluster.
  Make make;
};

// Until it is asked to stop. Error: what keeps it from starting.
Status RunPlanningDaemon(const DaemonFlags& flags, const PlanningDaemon& what);

}  // namespace nos::cmd
