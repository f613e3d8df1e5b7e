// Finds new nodes for the pods that no plan for the existing nodes can place: the cheapest mix of
// node groups that serves them as well as possible.
//
//   const GrowthPlan plan = PlanGrowth(snapshot, unplaced, pools, frameworks, options);
//   for (const PoolGrowth& pool : plan.pools) if (pool.count > 0) ...
//
// The objectives, in this order: the served pods, level by level as in a plan (planner.h); the
// price; the number of nodes. Nodes that are already requested, and nodes that a group lacks to
// reach its minimum, add no cost and are filled first. A gang is served as a whole or not at all.
//
// Existing nodes have no capacity for these pods, or a plan would have used it. The exception is a
// gang: existing nodes may have capacity for some of its pods. These pods stay on existing nodes,
// and the rest gets new nodes (growth_hosts.h selects the existing nodes). Otherwise existing nodes
// are not evaluated again. Filters that depend on other pods (topology spread, inter-pod affinity)
// see the pods on existing and on new nodes. pool_nodes.h defines the properties of a new node. The
// caller must leave out pods that exceed a quota.
//
// Small problems are solved exhaustively (`proven`). For others docs/decisions/0032 states the
// quality of the mix. The work is bounded. Pure: the same input gives the same plan, except for
// `out_of_time`.
// says. Work is bounded. Pure: same input, same plan, but for `out_of_time`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/node_pool.h"
#include "planning/plan.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

struct NodePoolState {
  std::shared_ptr<const cluster::NodePool> pool;
  int nodes = 0;   // existing nodes
  int coming = 0;  // requested nodes that have not joined yet
  // Why the group gets no more nodes now ("did not deliver, next try in 4m"), or "".
  std::string closed;
};

struct PoolGrowth {
  // Nodes to request, including those up to the group's minimum. If the properties of the group's
  // nodes are unknown, only the latter.
  int count = 0;
  std::string problem;  // why the group cannot be used for planning, and what to do; ""
};

// A new node, or an existing node with capacity for some pods of a gang whose other pods get new
// nodes.
struct NewNode {
  int pool = 0;           // index into `pools`; -1: an existing node
  std::string name;       // NewNodeName, or the existing node's name
  bool coming = false;    // requested already, has not joined yet
  std::vector<int> pods;  // indices into `unplaced`: pods that would run there

  bool IsThere() const { return pool < 0; }
};

// A pod that the plan does not serve.
struct LeftOut {
  int pod = 0;  // index into `unplaced`
  // Codes: those of pods that are not planned for (planner.h), NoPools, NoPoolFits (the message
  // names the group that comes closest, and its shortfall), PoolClosed, PoolsAtMaximum,
  // GangNotWhole, SearchEnded.
  Reason reason;
  int nearest = -1;  // index of the closest group; -1: none
};

struct GrowthPlan {
  std::vector<PoolGrowth> pools;  // in the order of the input
  std::vector<NewNode> nodes;     // nodes with pods
  std::vector<LeftOut> left_out;  // sorted by pod
  int served = 0;                 // number of pods
  int64_t milli_price = 0;        // per hour, of the new nodes that hold pods
  // No mix serves the levels better, in their order, and no mix that serves them equally well is
  // cheaper.
  bool proven = false;
};

// `options`: the indices in Gang::members refer to `unplaced`. When out_of_time returns true, the
// best plan found so far is returned.
GrowthPlan PlanGrowth(const cluster::ClusterSnapshot& snapshot,
                      std::span<const std::shared_ptr<const cluster::Pod>> unplaced,
                      const std::vector<NodePoolState>& pools,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

}  // namespace nos::planning
