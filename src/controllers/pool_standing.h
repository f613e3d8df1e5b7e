// How a node pool fares by what its status says, and how many nodes it has: for people.
//
//   const PoolStanding standing = StandingOf(*pool, now);    // {"closed", "2 nodes did not come"}
//   for (const PoolCount& count : CountPools(*view.nodes.Snapshot(), pools)) ...
//
// Pure.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/node_pool.h"
#include "codec/json.h"

namespace nos::controllers {

// Of a pool that does not say what its nodes are, and has none to learn from.
inline constexpr std::string_view kUndescribed = "no template";

struct PoolStanding {
  std::string_view state;  // "ready", "closed", "failing", "invalid", "unknown", kUndescribed
  std::string why;         // or what is wrong all the same
};
// Closed: until pool.closed_until. REQUIRES: a pool that learns has its template.
PoolStanding StandingOf(const cluster::NodePool& pool, Time now);

struct PoolCount {
  std::shared_ptr<const cluster::NodePool> pool;
  int nodes = 0;   // that stay
  int going = 0;   // on their way out: being deleted, or marked by the autoscaler
  int coming = 0;  // asked for, by its status, and not there yet
};
// By pool, in this order. A node that several pools select is the first's.
std::vector<PoolCount> CountPools(
    const std::vector<std::shared_ptr<const cluster::Node>>& nodes,
    const std::vector<std::shared_ptr<const cluster::NodePool>>& pools);

// Whether one of the two may be counted otherwise than the other. Null: there is none.
bool CountsOtherwise(const cluster::Node* before, const cluster::Node* after);

// What is told of it to a telemetry server, without the time (docs/telemetry.md).
JsonObject PoolRecord(const PoolCount& count, Time now);

// As cluster::ReadNodePool; one that cannot be used as it is written becomes one that is invalid,
// with nothing but its name and why. Error: it has no name either.
Status ReadPoolToTell(JsonSource json, cluster::NodePool& to);

}  // namespace nos::controllers
