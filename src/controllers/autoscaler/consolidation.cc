#include "controllers/autoscaler/consolidation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "planning/pool_nodes.h"

namespace nos::controllers {

void Consolidation::Drain(const ScalingCycle& cycle, const ObservedCluster& cluster,
                          cluster::ClusterSnapshot snapshot, const NodeNames& used) {
  if (!config_.shrink) return;
  int emptied = 0;
  for (const auto& [name, removal] : cluster.removals) {
    if (removal.state == Removal::State::kEmptying) ++emptied;
    snapshot.RemoveNode(name);
  }
  std::vector<planning::NodePoolState> pools;
  pools.reserve(cluster.pools.size());
  for (const ObservedPool& pool : cluster.pools) pools.push_back(pool.state.now);
  // 1. Find all nodes that could be removed, and since when.
  planning::ShrinkOptions options;
  options.rules = config_.relocations.rules;
  options.utilization_threshold = config_.utilization_threshold;
  options.max_nodes = cluster::kMaxPoolNodes;
  options.may_go = [&](const cluster::NodeInfo& node) {
    return IsRemovable(cluster, *node.node, used);
  };
  options.out_of_time = cycle.TimeLimit(config_.plan_timeout);
  UpdateRemovable(planning::PlanShrink(snapshot, pools, frameworks_, options), cycle.now);
  // 2. Drain those that have been removable for long enough.
  bool any = false;
  for (const auto& [name, since] : removable_since_) {
    const Time due = DueOf(cluster, name);
    if (due > cycle.now) schedule_.DecideBy(due);
    any |= due <= cycle.now;
  }
  options.max_nodes = config_.max_concurrent_drains - emptied;
  if (!any || options.max_nodes <= 0) return;
  options.may_go = [&](const cluster::NodeInfo& node) {
    return DueOf(cluster, node.node->meta.name) <= cycle.now &&
           IsRemovable(cluster, *node.node, used);
  };
  const planning::ShrinkPlan plan = planning::PlanShrink(snapshot, pools, frameworks_, options);
  for (const planning::EmptiedNode& node : plan.nodes) {
    StartDraining(cycle, cluster.pools[static_cast<size_t>(node.pool)].pool->meta.name, node);
  }
}

// False for a node that pending pods will use, and for a pool that cannot be asked to remove a node
// or cannot be asked to remove this particular node.
bool Consolidation::IsRemovable(const ObservedCluster& cluster, const cluster::Node& node,
                                const NodeNames& used) const {
  if (used.contains(node.meta.name) || MovesAwayOf(node)) return false;
  const auto own = std::ranges::find_if(
      cluster.pools, [&](const ObservedPool& pool) { return cluster::IsOf(*pool.pool, node); });
  if (own == cluster.pools.end() || own->HasSignal()) return false;
  // Without a way to name the node, the infrastructure would choose another one, possibly with
  // running pods.
  if (own->pool->webhook.empty() && own->pool->delete_annotation.empty()) return false;
  const auto leaving = std::ranges::count_if(cluster.removals, [&](const auto& item) {
    return item.second.pool == own->pool->meta.name && !IsRequested(item.second, *own->memory);
  });
  const auto& scale = own->memory->scale;
  if (!own->memory->MayWrite() || !scale) return false;
  // Nodes that are still coming may never arrive, so they do not count towards the minimum.
  return std::min(scale->wanted, own->nodes.there) - leaving > own->pool->min;
}

// Keeps the time of nodes that were removable before.
void Consolidation::UpdateRemovable(const planning::ShrinkPlan& plan, Time now) {
  std::map<std::string, Time> since;
  for (const planning::EmptiedNode& node : plan.nodes) {
    const auto known = removable_since_.find(node.name);
    since[node.name] = known == removable_since_.end() ? now : std::min(known->second, now);
  }
  removable_since_ = std::move(since);
}

// Time::max(): it is not removable.
Time Consolidation::DueOf(const ObservedCluster& cluster, const std::string& node) const {
  const auto since = removable_since_.find(node);
  if (since == removable_since_.end()) return Time::max();
  Time due = since->second + config_.shrink_after;
  for (const ObservedPool& pool : cluster.pools) {
    due = std::max(due, pool.memory->grown + config_.shrink_after);
  }
  return due;
}

void Consolidation::StartDraining(const ScalingCycle& cycle, const std::string& pool,
                                  const planning::EmptiedNode& node) {
  const Relocation relocation{ids_.Next(cycle.now), node.name, pool, "", node.moves};
  const Status started = relocations_.Start(relocation, cycle.view, cycle.client, cycle.now);
  removable_since_.erase(node.name);
  if (!started.ok()) {  // Relocations::Step rolls back or completes the part that was written
    Log(LogLevel::kWarn, "failed to start draining Node",
        {{"node", node.name}, {"error", started.ToString()}});
    return;
  }
  std::vector<std::string> pods;
  pods.reserve(node.moves.size());
  for (const planning::Move& move : node.moves) pods.push_back(move.pod->Key());
  events_.Record({.action = "shrink",
                  .pool = pool,
                  .node = node.name,
                  .count = 1,
                  .pods = pods,
                  .message = fmt::format(
                      "Draining Node {} of NodePool {}: {}", node.name, pool,
                      pods.empty() ? std::string("no Pod runs on it")
                                   : fmt::format("its {} Pods fit on other Nodes", pods.size()))},
                 cycle.now);
}

}  // namespace nos::controllers
