// Output of `nos get pools`, and the number of nodes of each node pool. Pure functions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/node_pool.h"
#include "cmd/query/get_report.h"
#include "controllers/pool_standing.h"
#include "planning/growth.h"

namespace nos::cmd {

using SharedPool = std::shared_ptr<const cluster::NodePool>;

using controllers::PoolCount;
// Counts per pool, in the order of `pools`. A node that several pools select belongs to the first.
std::vector<PoolCount> CountPools(const cluster::ClusterSnapshot& snapshot,
                                  const std::vector<SharedPool>& pools);

// Input of growth planning. The pool's status decides if it may grow now.
planning::NodePoolState NowOf(const PoolCount& count, Time now);

// "12.25"
std::string PriceText(int64_t milli_price);

// One row per pool in LiveCluster::pools, which include what was recorded from existing nodes.
Printout ReportPools(const LiveCluster& live, Time now);

}  // namespace nos::cmd
