// Summarises the state of a node pool from its status, and counts its nodes, for telemetry and the
// dashboard.
//
//   const PoolStanding standing = StandingOf(*pool, now);    // {"closed", "2 nodes did not come"}
//   for (const PoolCount& count : CountPools(*view.nodes.Snapshot(), pools)) ...
//
// Pure functions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/node_pool.h"
#include "codec/json.h"

namespace nos::controllers {

// State of a pool whose spec does not describe its nodes and that has no node to copy the
// description from.
inline constexpr std::string_view kUndescribed = "no template";

struct PoolStanding {
  std::string_view state;  // "ready", "closed", "failing", "invalid", "unknown", kUndescribed
  std::string why;         // reason for the state, or a problem that does not stop the pool
};
// "closed" lasts until pool.closed_until. REQUIRES: cluster::WithTemplate has been applied to the
// pool.
PoolStanding StandingOf(const cluster::NodePool& pool, Time now);

struct PoolCount {
  std::shared_ptr<const cluster::NodePool> pool;
  int nodes = 0;   // existing nodes that stay
  int going = 0;   // nodes being deleted, or marked for removal by the autoscaler
  int coming = 0;  // nodes that the status wants and that do not exist yet
};
// In the order of `pools`. A node that several pools select counts for the first of them.
std::vector<PoolCount> CountPools(
    const std::vector<std::shared_ptr<const cluster::Node>>& nodes,
    const std::vector<std::shared_ptr<const cluster::NodePool>>& pools);

// Returns true if a change from `before` to `after` may change the counts. Null means that the node
// does not exist.
bool CountsOtherwise(const cluster::Node* before, const cluster::Node* after);

// The record that the collector sends to a telemetry server, without the time (docs/telemetry.md).
JsonObject PoolRecord(const PoolCount& count, Time now);

// Like cluster::ReadNodePool, but an invalid pool becomes a pool with only its name and a condition
// that says why it is invalid. Error: the pool has no name either.
Status ReadPoolToReport(JsonSource json, cluster::NodePool& to);

}  // namespace nos::controllers
