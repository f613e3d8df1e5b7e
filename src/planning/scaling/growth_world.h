// The pools as the search sees them: a Problem with one empty node of each. Where gangs lack
// places, nodes that there are and could hold some of a gang (growth_hosts.h) are types, too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planning/scaling/bins.h"
#include "planning/growth.h"
#include "planning/translation/translate.h"

namespace nos::planning {

struct GrowthWorld {
  // The cluster, if pods are asked for what else runs in it, and a node of each pool. Else the
  // nodes of the types alone.
  cluster::ClusterSnapshot snapshot;
  Translation types;  // its nodes are those of the types
  std::vector<NodeType> node_types;
  std::vector<std::string> problems;  // by pool: why it has no type; or ""
  bool live = false;                  // some pods are asked by live filters (live_filters.h)
  bool has_all_hosts = true;          // no other node that there is could hold some of a gang
};

// Nodes that the pool is to be asked for whoever waits; none while it is closed.
int LacksToMinimum(const PoolNow& now);

// The arguments must outlive it. `beside`: gangs may have places on nodes that there are.
GrowthWorld MakeGrowthWorld(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                            const std::vector<PoolNow>& pools,
                            const scheduling::FrameworkChoice& frameworks,
                            const PlanOptions& options, bool beside);

// The translation for these bins, which stand on the nodes of `snapshot`: the cluster with a new
// node of its own for each that is of a pool.
struct BinWorld {
  cluster::ClusterSnapshot snapshot;
  Translation translation;
};
BinWorld MakeBinWorld(const GrowthWorld& world, const std::vector<PoolNow>& pools,
                      const Bins& bins);

// The names of the bins' nodes: those of a pool are numbered, the free ones first; what is there
// has its own.
std::vector<std::string> NamesOf(const GrowthWorld& world, const std::vector<PoolNow>& pools,
                                 const Bins& bins);

}  // namespace nos::planning
