// Writes the status of NodePools, and replaces cached pools by what was written as long as the
// cache lags behind.
//
//   PoolStatuses statuses;
//   for (const auto& pool : statuses.Current(context.pools)) ...
//   NOS_RETURN_IF_ERROR(statuses.Write(cycle, pool));   // nothing is sent if nothing changes
//
// Owned by one thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/context.h"
#include "controllers/autoscaler/cycle.h"
#include "controllers/autoscaler/pools/observed.h"
#include "reconcile/read_your_writes.h"

namespace nos::controllers {

class PoolStatuses {
 public:
  // All pools of the context, by name.
  std::vector<std::shared_ptr<const cluster::NodePool>> Current(
      const cluster::ClusterContext& context);
  // Writes pool.state.status and updates the pool to the answer. A pool that is deleted is no
  // error. Error: as reported by the API server.
  Status Write(const ScalingCycle& cycle, ObservedPool& pool);

 private:
  reconcile::ReadYourWrites<cluster::NodePool> written_;
};

}  // namespace nos::controllers
