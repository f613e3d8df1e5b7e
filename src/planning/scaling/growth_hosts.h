// Finds existing nodes with capacity for some pod of an incomplete gang: the rest of the gang may
// run next to them on new nodes.
//
//   const GangHosts hosts = HostsForGangs(snapshot, unplaced, frameworks, options);
//
// Returns at most 200 nodes, those with capacity for most pods of one kind first. Pure, except for
// `out_of_time`.
#pragma once

#include <set>
#include <string>

#include "planning/translation/translate.h"

namespace nos::planning {

struct GangHosts {
  std::set<std::string, std::less<>> names;
  bool all = true;  // no other node has capacity
};

// Free instances count as empty space. Cordoned nodes are left out. `options`: gang members are
// indices into `unplaced`.
GangHosts HostsForGangs(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                        const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

}  // namespace nos::planning
