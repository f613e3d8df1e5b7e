// Which nodes of the pools could go: all their pods may be moved, and find room on other nodes.
//
//   const ShrinkPlan plan = PlanShrink(snapshot, pools, frameworks, options);
//   for (const EmptiedNode& node : plan.nodes) ...   // all of its moves, or none
//
// One node after the other: where the pods of the first go, the second finds that room taken. The
// planner says where they go (planner.h), with the GPUs cut for them; used slices stay where they
// are. A node that takes moved pods does not go in the same plan. No pool falls below its minimum.
// Nothing is decided here about time: how long a node must have been idle is the caller's
// (`may_go`). Pods that wait and could use what goes are to be placed before.
//
// Pure: same input, same plan, but for `out_of_time`.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "planning/growth.h"
#include "planning/mobility.h"

namespace nos::planning {

struct ShrinkOptions {
  MobilityRules rules;
  // Of the scarcest of cpu, memory and GPUs: nodes of which pods use more are left alone.
  double most_use = 0.5;
  int most_nodes = 10;   // in one plan
  int most_tries = 100;  // nodes whose pods places are looked for
  // Whether the node may go now; none: any.
  std::function<bool(const cluster::NodeInfo&)> may_go;
  std::function<bool()> out_of_time;
};

struct EmptiedNode {
  int pool = 0;  // of those given
  std::string name;
  std::vector<Move> moves;  // by pod
};

// A node that stays, and why. Codes: AtMinimum, NodeStays (an annotation), NotNow (`may_go`),
// InUse, PodStays, Budget, TakesMovedPods, NoRoom, NotLookedAt.
struct KeptNode {
  int pool = 0;
  std::string name;
  Reason reason;
};

struct ShrinkPlan {
  std::vector<EmptiedNode> nodes;  // in the order in which they go
  std::vector<KeptNode> kept;      // the other nodes of pools, by name
  cluster::ClusterSnapshot after;  // the cluster without those nodes, moved pods on theirs
  int64_t milli_price = 0;         // that is saved an hour
};

// `pools`: of their nodes only those count that are in the snapshot.
ShrinkPlan PlanShrink(const cluster::ClusterSnapshot& snapshot, const std::vector<PoolNow>& pools,
                      const scheduling::FrameworkChoice& frameworks, const ShrinkOptions& options);

}  // namespace nos::planning
