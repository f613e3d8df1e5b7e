// Checks a plugin's incremental updates (Update, UpdateScore, UpdateFeasible) against a
// recomputation.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/snapshot.h"
#include "scheduling/plugin.h"

namespace nos::scheduling::testing {

// Binds and unbinds pods of `pool` on random nodes, `steps` times. After each step compares updated
// and recomputed results, also on nodes outside the changed node and the touched domains. Returns
// the first difference, or "".
std::string FollowFault(const Plugin& plugin, const cluster::Pod& pod,
                        cluster::ClusterSnapshot snapshot, const std::vector<cluster::Pod>& pool,
                        int steps, Random& random);

}  // namespace nos::scheduling::testing
