// Finds nodes of NodePools that can be removed: all their pods may be moved and have places on
// other nodes.
//
//   const ShrinkPlan plan = PlanShrink(snapshot, pools, frameworks, options);
//   for (const EmptiedNode& node : plan.nodes) ...   // all of its moves, or none
//
// Nodes are handled one after the other: the capacity that the pods of the first node use is not
// available to the second. The planner chooses the targets (planner.h) and may partition GPUs for
// the moved pods; used slices stay in place. A node that receives moved pods is not removed in the
// same plan. No group falls below its minimum. The caller decides how long a node must have been
// idle (`may_go`). Pending pods that could use the freed capacity must be placed before the call.
//
// Pure: the same input gives the same plan, except for `out_of_time`.
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
  // Share in use of the scarcest of cpu, memory and GPUs, 0 to 1. Nodes with a higher share are
  // kept.
  double utilization_threshold = 0.5;
  int max_nodes = 10;   // per plan
  int max_tries = 100;  // nodes for whose pods targets are searched
  // True if the node may be removed now. Null: any node may be.
  std::function<bool(const cluster::NodeInfo&)> may_go;
  std::function<bool()> out_of_time;
};

struct EmptiedNode {
  int pool = 0;  // index into `pools`
  std::string name;
  std::vector<Move> moves;  // sorted by pod
};

// A node that is kept, and why. Codes: AtMinimum, NodeStays (an annotation), NotNow (`may_go`),
// InUse, PodStays, Budget, TakesMovedPods, NoRoom, NotLookedAt.
struct KeptNode {
  int pool = 0;
  std::string name;
  Reason reason;
};

struct ShrinkPlan {
  std::vector<EmptiedNode> nodes;  // in the order of removal
  std::vector<KeptNode> kept;      // the other nodes of NodePools, by name
  // The cluster without the removed nodes, moved pods on their new nodes.
  cluster::ClusterSnapshot after;
  int64_t milli_price = 0;  // saved per hour
};

// `pools`: only nodes that are in the snapshot count.
ShrinkPlan PlanShrink(const cluster::ClusterSnapshot& snapshot,
                      const std::vector<NodePoolState>& pools,
                      const scheduling::FrameworkChoice& frameworks, const ShrinkOptions& options);

}  // namespace nos::planning
