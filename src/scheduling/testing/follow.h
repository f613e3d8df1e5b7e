// Whether what a plugin keeps up to date with Update, UpdateScore and UpdateFeasible is what it
// would say anew.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/snapshot.h"
#include "scheduling/plugin.h"

namespace nos::scheduling::testing {

// Binds and unbinds pods of `pool` on random nodes, `steps` times, and asks the plugin after each
// step both ways; also for changes outside the changed node and the touched domains. Returns what
// is wrong, "" if nothing is.
std::string FollowFault(const Plugin& plugin, const cluster::Pod& pod,
                        cluster::ClusterSnapshot snapshot, const std::vector<cluster::Pod>& pool,
                        int steps, Random& random);

}  // namespace nos::scheduling::testing
