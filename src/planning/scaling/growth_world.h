// The node groups in the form that the search uses: a Problem with one empty node per group. If
// gangs lack places, existing nodes with capacity for some of their pods (growth_hosts.h) are
// types, too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "planning/growth.h"
#include "planning/scaling/bins.h"
#include "planning/translation/translate.h"

namespace nos::planning {

struct GrowthWorld {
  // The cluster with one node per group, if filters depend on other pods. Otherwise only the nodes
  // of the types.
  cluster::ClusterSnapshot snapshot;
  Translation types;  // contains the nodes of the types only
  std::vector<NodeType> node_types;
  std::vector<std::string> problems;  // by group: why it has no type; or ""
  bool live = false;                  // live filters apply to some pods (live_filters.h)
  bool has_all_hosts = true;          // no other existing node has capacity for part of a gang
};

// Number of nodes that the group lacks to its minimum; 0 while it is closed.
int LacksToMinimum(const NodePoolState& now);

// The arguments must outlive the result. `beside`: gangs may use existing nodes.
GrowthWorld MakeGrowthWorld(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                            const std::vector<NodePoolState>& pools,
                            const scheduling::FrameworkChoice& frameworks,
                            const PlanOptions& options, bool beside);

// The translation for these bins on the nodes of `snapshot`: the cluster with a separate new node
// for each bin of a group.
struct BinWorld {
  cluster::ClusterSnapshot snapshot;
  Translation translation;
};
BinWorld MakeBinWorld(const GrowthWorld& world, const std::vector<NodePoolState>& pools,
                      const Bins& bins);

// The names of the bins' nodes. New nodes of a group are numbered, free ones first; existing nodes
// keep their names.
std::vector<std::string> NamesOf(const GrowthWorld& world, const std::vector<NodePoolState>& pools,
                                 const Bins& bins);

}  // namespace nos::planning
