// Which new nodes would serve the pods that no plan for the nodes there are can place: the cheapest
// mix of the pools that serves them as well as can be.
//
//   const GrowthPlan plan = PlanGrowth(snapshot, unplaced, pools, frameworks, options);
//   for (const PoolGrowth& pool : plan.pools) if (pool.count > 0) ...
//
// What is optimised, in this order: the pods served, level by level as in a plan (planner.h); the
// price; the number of nodes. Nodes that are on their way, and those that a pool lacks to its
// minimum, cost nothing more and are filled first. Gangs are served as a whole, or not at all.
//
// Existing nodes have no room for these pods, or a plan would have used it; but for some pods of a
// gang they may have: those stay there, and new nodes are for the rest (growth_hosts.h says which
// nodes are looked at). Else existing nodes are not looked at again. Their pods count for filters
// that look at them (spreading, affinity between pods), and so does what lies on new nodes. What a
// new node is, pool_nodes.h says. Pods whom quotas refuse are not to be given to this.
//
// Few nodes are looked at exhaustively (`proven`); else the mix is as good as docs/decisions/0032
// says. Work is bounded. Pure: same input, same plan, but for `out_of_time`.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cluster/node_pool.h"
#include "planning/planner.h"

namespace nos::planning {

struct PoolNow {
  std::shared_ptr<const cluster::NodePool> pool;
  int nodes = 0;       // that there are
  int coming = 0;      // asked for, and not there yet
  std::string closed;  // why it gets no further ones now ("did not deliver, next try in 4m"); or ""
};

struct PoolGrowth {
  // Nodes to ask for, with those that it lacks to its minimum: these alone where nobody knows what
  // its nodes are.
  int count = 0;
  std::string problem;  // why it cannot be planned with, and what to do; ""
};

// Or one that is there, where pods of a gang have room beside which the rest gets new nodes.
struct NewNode {
  int pool = 0;           // of those given; -1: it is there
  std::string name;       // NewNodeName; its own if it is there
  bool coming = false;    // asked for already, and not there yet
  std::vector<int> pods;  // of the unplaced: that would run there

  bool IsThere() const { return pool < 0; }
};

// A pod that the plan does not serve.
struct LeftOut {
  int pod = 0;  // of the unplaced
  // Codes: those of pods that nobody plans for (planner.h), NoPools, NoPoolFits (the message says
  // which pool comes nearest, and what lacks), PoolClosed, PoolsAtMaximum, GangNotWhole,
  // SearchEnded.
  Reason reason;
  int nearest = -1;  // the pool; -1: none
};

struct GrowthPlan {
  std::vector<PoolGrowth> pools;  // as given
  std::vector<NewNode> nodes;     // that hold pods
  std::vector<LeftOut> left_out;  // by pod
  int served = 0;                 // pods
  int64_t milli_price = 0;        // of the nodes to ask for that hold pods, for an hour
  // No mix serves the levels, in their order, better, and none that serves them as well is cheaper.
  bool proven = false;
};

// `options`: gangs by their place among the unplaced; out_of_time: return what there is.
GrowthPlan PlanGrowth(const cluster::ClusterSnapshot& snapshot,
                      std::span<const std::shared_ptr<const cluster::Pod>> unplaced,
                      const std::vector<PoolNow>& pools,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

}  // namespace nos::planning
