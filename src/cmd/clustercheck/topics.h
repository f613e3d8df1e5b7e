// The checks of a cluster, one function for each topic. Pure.
#pragma once

#include <vector>

#include "cmd/clustercheck/snapshot.h"
#include "cmd/findings/verdict.h"

namespace nos::cmd {

void CheckServer(const Snapshot& snapshot, Findings& findings);
void CheckInstallation(const Snapshot& snapshot, Findings& findings);
void CheckWebhooks(const Snapshot& snapshot, Findings& findings);
void CheckAccess(const Snapshot& snapshot, Findings& findings);
void CheckNodes(const Snapshot& snapshot, Findings& findings);
void CheckGpuLabels(const Snapshot& snapshot, Findings& findings);
void CheckRuntime(const Snapshot& snapshot, Findings& findings);
void CheckDevicePlugins(const Snapshot& snapshot, Findings& findings);
void CheckScheduling(const Snapshot& snapshot, Findings& findings);
void CheckTelemetry(const Snapshot& snapshot, Findings& findings);

// All of the above.
std::vector<Finding> CheckCluster(const Snapshot& snapshot);

// The rights that this command needs, and those that the daemons' ServiceAccounts need.
std::vector<AccessFacts> RightsToAskFor(const Snapshot& snapshot);

}  // namespace nos::cmd
