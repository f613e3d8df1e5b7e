// Which pods move for one pod that waits: one step of moves.h.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planning/defrag/hosts.h"
#include "planning/moves.h"

namespace nos::planning {

// The plan in the making. A copy is cheap.
struct MoveWorld {
  cluster::ClusterSnapshot after;
  EvictionBudgets budgets;
  std::set<std::string> settled;  // pods that were moved or relieved: they stay from now on
  std::vector<std::shared_ptr<const cluster::Pod>> moving;  // of whom `take` has not been told
  std::vector<Relief> reliefs;
  std::vector<NotRelieved> in_room;  // that need no move of their own
};

// As it would run there.
std::shared_ptr<const cluster::Pod> Placed(const cluster::Pod& pod, const std::string& node,
                                           const std::vector<AssignedDevice>& devices);

// Adds a relief for the pod, number `number` of the unplaced, with the fewest moves, `most` at
// most, and of these the cheapest. Or leaves the world as it is, and says why.
std::optional<Reason> Relieve(int number, const Newcomer& pod, int most, const MoveOptions& options,
                              MoveWorld& world);

}  // namespace nos::planning
