// Which pods that run would have to move for pods that wait to have a place: the fewest, and those
// that cost least, all of which find room elsewhere first.
//
//   const MovePlan plan = PlanMoves(snapshot, unplaced, frameworks, plan_options, options);
//   for (const Relief& relief : plan.reliefs) ...   // all of its moves, or none
//
// One relief after the other, those that wait in the order of a plan (planner.h): what the first
// takes, the second does not have. A pod moves once in a plan, one that was moved makes room for
// nobody else, and used slices of other pods stay where they are. `after` holds the moved pods on
// their new nodes and the relieved ones on theirs. Who has room without moves of its own, by what
// others' moves leave, is there, too, and no relief (HasRoom).
//
// All moves of a relief are off one node, and go to others. Fewest moves first; of as many those of
// less important pods, then of those beyond their quota, then of those that have less. With up to
// some 30 pods on a node that may be moved and could help, that is proven; with more, one set that
// is enough is found for it step by step. What a gang lacks is relieved as a whole, one pod after
// the other, with most_moves in all; its other pods count by themselves.
//
// Pure: same input, same plan, but for `out_of_time`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "planning/mobility.h"
#include "planning/planner.h"

namespace nos::planning {

struct MoveOptions {
  MobilityRules rules;
  int most_moves = 3;     // for one pod that waits, or one gang
  int most_reliefs = 10;  // in one plan
  int most_tries = 200;   // nodes that are looked at for one pod
  // Whether the caller's budgets (an hour's, a namespace's) let this one go beside all that were
  // taken; `take` is called for the pods of a relief in their order once that is certain. None:
  // any.
  std::function<bool(const cluster::Pod&)> may_move;
  std::function<void(const cluster::Pod&)> take;
  std::function<bool()> out_of_time;
  // The same of several that would go for one pod, or for what a gang lacks; none: any.
  std::function<bool(std::span<const std::shared_ptr<const cluster::Pod>>)> may_move_together;
};

// Pods that would run, and what it takes.
struct Relief {
  int pod = 0;  // of the unplaced
  std::string node;
  std::vector<AssignedDevice> devices;
  std::vector<Move> moves;  // in the order in which they may go; at least one
};

// A pod that no moves of its own serve. Codes: those of pods that nobody plans for, HasRoom,
// TooManyMoves (how many would have to), NothingMovable, NoRoomElsewhere, Budget, GangNotWhole,
// SearchEnded.
struct NotRelieved {
  int pod = 0;
  Reason reason;
};

struct MovePlan {
  std::vector<Relief> reliefs;
  std::vector<NotRelieved> others;  // by pod
  cluster::ClusterSnapshot after;
};

// `unplaced`: whom no plan places (MakePlan); whom it does place is in the snapshot, bound without
// a node of its own (Pod::node_name), and stays. `plan`: how they count (gangs by their place among
// the unplaced, time).
MovePlan PlanMoves(const cluster::ClusterSnapshot& snapshot,
                   std::span<const std::shared_ptr<const cluster::Pod>> unplaced,
                   const scheduling::FrameworkChoice& frameworks, const PlanOptions& plan,
                   const MoveOptions& options);

}  // namespace nos::planning
