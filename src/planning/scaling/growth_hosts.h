// Nodes that there are, where some pod of a gang that is not whole has room now: the rest of it may
// run beside them on new nodes.
//
//   const GangHosts hosts = HostsForGangs(snapshot, unplaced, frameworks, options);
//
// 200 at most, those first that hold the most pods of one kind. Pure, but for `out_of_time`.
#pragma once

#include <set>
#include <string>

#include "planning/translation/translate.h"

namespace nos::planning {

struct GangHosts {
  std::set<std::string, std::less<>> names;
  bool all = true;  // there are no others
};

// Free GPUs count as cut anew, and cordoned nodes as none. `options`: gangs by their place among
// the unplaced.
GangHosts HostsForGangs(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                        const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

}  // namespace nos::planning
