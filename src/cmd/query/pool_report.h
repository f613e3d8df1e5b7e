// What `nos get pools` prints, and how many nodes a node pool has. Pure.
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
// By pool, in this order. A node that several pools select is the first's.
std::vector<PoolCount> CountPools(const cluster::ClusterSnapshot& snapshot,
                                  const std::vector<SharedPool>& pools);

// As growth is planned for it: whether it gets further nodes now is what its status says.
planning::PoolNow NowOf(const PoolCount& count, Time now);

// "12.25"
std::string PriceText(int64_t milli_price);

// A row for each pool of LiveCluster::pools, which have what was learnt.
Printout ReportPools(const LiveCluster& live, Time now);

}  // namespace nos::cmd
