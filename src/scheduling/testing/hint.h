// Checks that a plugin's queueing hints miss no event that helps.
#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "cluster/snapshot.h"
#include "scheduling/plugin.h"

namespace nos::scheduling::testing {

// Adds, changes and removes pods of `pool`, and replaces or removes nodes of `nodes`, `steps`
// times. Returns a description of the first event after which the plugin accepts a node that it
// refused although MayHelp returned false, or "".
std::string HintFault(const Plugin& plugin, const cluster::Pod& pod,
                      cluster::ClusterSnapshot snapshot, const std::vector<cluster::Pod>& pool,
                      const std::vector<cluster::Node>& nodes, int steps, Random& random);

}  // namespace nos::scheduling::testing
