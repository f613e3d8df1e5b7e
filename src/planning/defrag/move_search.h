// Chooses the moves for one pending pod: one step of moves.h.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planning/defrag/candidate_nodes.h"
#include "planning/defrag/quota_standing.h"
#include "planning/moves.h"

namespace nos::planning {

// The plan under construction. Copies are cheap.
struct MoveWorld {
  cluster::ClusterSnapshot after;
  EvictionBudgets budgets;
  std::shared_ptr<QuotaStanding> quotas;  // of all plans of moves; not null
  std::set<std::string> settled;  // moved pods and served pending pods; they are not moved any more
  // Pods to be reported to `take` when the plan is accepted.
  std::vector<std::shared_ptr<const cluster::Pod>> moving;
  std::vector<PodMoves> pod_moves;
  std::vector<NoMoveFound> in_room;  // pending pods that fit without moves of their own
};

// The pod as it would run on the node.
std::shared_ptr<const cluster::Pod> Placed(const cluster::Pod& pod, const std::string& node,
                                           const std::vector<AssignedDevice>& devices);

// Adds a PodMoves for the pod with index `number` in `unplaced`: the fewest moves, at most `most`,
// and of these the cheapest. Otherwise leaves `world` unchanged and returns the reason.
std::optional<Reason> PlanMovesFor(int number, const PendingPod& pod, int most,
                                   const MoveOptions& options, MoveWorld& world);

}  // namespace nos::planning
