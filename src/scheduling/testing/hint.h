// Whether a plugin's queueing hints miss events that help.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/snapshot.h"
#include "scheduling/plugin.h"

namespace nos::scheduling::testing {

// Lets pods of `pool` come, change and go, and nodes of `nodes` come in the place of others or go,
// `steps` times. Returns what is wrong, "" if nothing is: an event after which the plugin refuses
// the pod on fewer nodes, but of which MayHelp says that it does not help.
std::string HintFault(const Plugin& plugin, const cluster::Pod& pod,
                      cluster::ClusterSnapshot snapshot, const std::vector<cluster::Pod>& pool,
                      const std::vector<cluster::Node>& nodes, int steps, Random& random);

}  // namespace nos::scheduling::testing
