// Plans moves of running pods that make capacity for pending pods: the fewest moves, then the least
// costly ones. Every moved pod has a place on another node before it moves.
//
//   const MovePlan plan = PlanMoves(snapshot, unplaced, frameworks, plan_options, options);
//   for (const PodMoves& pod_moves : plan.pod_moves) ...   // all of its moves, or none
//
// Each PodMoves is the moves for one pending pod. Pending pods are handled one after the other in
// the order of a plan (planner.h), and later ones see what earlier ones use. A pod moves at most
// once in a plan, a moved pod is not moved again for another pending pod, and used slices of other
// pods stay in place. `after` contains the moved pods on their new nodes and the pending pods on
// theirs. A pending pod that fits because of the moves for others is in `after`, too, but has no
// PodMoves (code kCapacityAvailable).
//
// All moves of one PodMoves leave the same node and go to other nodes. The set with the fewest
// moves is chosen; of equally many, the set with the less important pods, then with more pods over
// their quota, then with fewer resources. This is proven for nodes with up to about 30 movable pods
// that could help. On nodes with more, one sufficient set is found step by step. The pods that a
// gang lacks are handled as a whole, one pod after the other, with max_moves in all; the gang's
// other pods are handled as single pods.
//
// Pure: the same input gives the same plan, except for `out_of_time`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planning/mobility.h"
#include "planning/planner.h"

namespace nos::planning {

// Code of a pod that fits on existing nodes, perhaps after moves for other pods.
inline constexpr const char* kCapacityAvailable = "CapacityAvailable";

struct MoveOptions {
  MobilityRules rules;
  int max_moves = 3;         // per pending pod or gang
  int max_pods_served = 10;  // per plan
  int max_tries = 200;       // nodes evaluated per pending pod
  // True if the caller's limits (per hour, per namespace) allow this move in addition to all moves
  // already accepted. `take` is called for the pods of a PodMoves, in order, when they are
  // accepted. Null: no limits.
  std::function<bool(const cluster::Pod&)> may_move;
  std::function<void(const cluster::Pod&)> take;
  std::function<bool()> out_of_time;
  // The same for all pods that move for one pending pod or one gang. Null: no limits.
  std::function<bool(std::span<const std::shared_ptr<const cluster::Pod>>)> may_move_together;
};

// A pending pod, and the moves after which it runs.
struct PodMoves {
  int pod = 0;  // index into `unplaced`
  std::string node;
  std::vector<AssignedDevice> devices;
  std::vector<Move> moves;  // in the order in which they may be made; at least one
};

// A pending pod without moves of its own. Codes: those of pods that are not planned for,
// TooManyMoves (the message says how many), NothingMovable, NoRoomElsewhere, Budget, GangNotWhole,
// SearchEnded.
struct NoMoveFound {
  int pod = 0;
  Reason reason;
};

struct MovePlan {
  std::vector<PodMoves> pod_moves;
  std::vector<NoMoveFound> others;  // sorted by pod
  cluster::ClusterSnapshot after;
};

// `unplaced`: pods that MakePlan does not place. Pods that it places are in the snapshot, bound
// without a node of their own (Pod::node_name is empty), and stay. `plan`: gangs (members are
// indices into `unplaced`) and time limit.
MovePlan PlanMoves(const cluster::ClusterSnapshot& snapshot,
                   std::span<const std::shared_ptr<const cluster::Pod>> unplaced,
                   const scheduling::FrameworkChoice& frameworks, const PlanOptions& plan,
                   const MoveOptions& options);

}  // namespace nos::planning
