// Drains nodes that have been removable for long enough.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "controllers/autoscaler/internal.h"
#include "planning/pool_nodes.h"

namespace nos::controllers {

// False for a node that pending pods will use, and for a pool that cannot be asked to remove a node
// or cannot be asked to remove this particular node.
bool Autoscaler::Impl::MayGo(const Look& look, const cluster::NodeInfo& node) const {
  if (look.filled.contains(node.node->meta.name) || MovesAwayOf(*node.node)) return false;
  const auto own = std::ranges::find_if(
      look.pools, [&](const Pool& pool) { return cluster::IsOf(*pool.pool, *node.node); });
  if (own == look.pools.end() || own->pool->signal != cluster::PoolSignal::kNone) return false;
  // Without a way to name the node, the infrastructure would choose another one, possibly with
  // running pods.
  if (own->pool->webhook.empty() && own->pool->delete_annotation.empty()) return false;
  const auto emptied = std::ranges::count_if(look.removals, [&](const auto& item) {
    return item.second.pool == own->pool->meta.name && !IsTold(item.second, *own->known);
  });
  if (!own->known->MayWrite()) return false;
  // Nodes that are still coming may never arrive, so they do not count towards the minimum.
  return std::min(own->known->scale->wanted, own->nodes.there) - emptied > own->pool->min;
}

void Autoscaler::Impl::Shrink(Look& look, const Demand& demand,
                              const cluster::ClusterSnapshot& picture) {
  // A pending placeholder is about to take capacity; moves planned now could collide with it.
  if (!config_.shrink || demand.placeholders_wait) return;
  cluster::ClusterSnapshot snapshot = picture;
  int emptied = 0;
  for (const auto& [name, removal] : look.removals) {
    if (removal.state == Removal::State::kEmptying) ++emptied;
    snapshot.RemoveNode(name);
  }
  std::vector<planning::NodePoolState> pools;
  Time quiet{};
  for (const Pool& pool : look.pools) {
    pools.push_back(pool.state.now);
    quiet = std::max(quiet, pool.known->grown + config_.shrink_after);
  }
  planning::ShrinkOptions options;
  options.rules = config_.relocations.rules;
  options.most_use = config_.most_use;
  options.most_nodes = cluster::kMaxPoolNodes;
  options.may_go = [&](const cluster::NodeInfo& node) { return MayGo(look, node); };
  options.out_of_time = TimeLimit(look);
  std::map<std::string, Time> could_go;
  const planning::ShrinkPlan could = planning::PlanShrink(snapshot, pools, frameworks_, options);
  for (const planning::EmptiedNode& node : could.nodes) {
    const auto known = could_go_.find(node.name);
    could_go[node.name] = known == could_go_.end() ? look.now : std::min(known->second, look.now);
  }
  could_go_ = std::move(could_go);
  const auto due = [&](const std::string& name) {
    const auto since = could_go_.find(name);
    return since == could_go_.end() ? Time::max()
                                    : std::max(since->second + config_.shrink_after, quiet);
  };
  bool any = false;
  for (const auto& [name, since] : could_go_) {
    if (due(name) > look.now) DecideBy(due(name));
    any |= due(name) <= look.now;
  }
  options.most_nodes = config_.most_emptied - emptied;
  if (!any || options.most_nodes <= 0) return;
  options.may_go = [&](const cluster::NodeInfo& node) {
    return due(node.node->meta.name) <= look.now && MayGo(look, node);
  };
  const planning::ShrinkPlan plan = planning::PlanShrink(snapshot, pools, frameworks_, options);
  for (const planning::EmptiedNode& node : plan.nodes) StartEmptying(look, node);
}

void Autoscaler::Impl::StartEmptying(Look& look, const planning::EmptiedNode& node) {
  const std::string& pool = look.pools[static_cast<size_t>(node.pool)].pool->meta.name;
  const auto stamp = static_cast<uint64_t>(look.now.time_since_epoch().count());
  const Relocation relocation{Relocations::NewId(stamp + ++relocations_made_), node.name, pool, "",
                              node.moves};
  const Status started = relocations_.Start(relocation, look.view, look.client, look.now);
  could_go_.erase(node.name);
  if (!started.ok()) {  // Relocations::Step rolls back or completes the part that was written
    Log(LogLevel::kWarn, "failed to start draining Node",
        {{"node", node.name}, {"error", started.ToString()}});
    return;
  }
  std::vector<std::string> pods;
  for (const planning::Move& move : node.moves) pods.push_back(move.pod->Key());
  Record({.action = "shrink",
          .pool = pool,
          .node = node.name,
          .count = 1,
          .pods = pods,
          .message = fmt::format(
              "node {} of pool {} goes: {}", node.name, pool,
              pods.empty() ? std::string("nothing runs there")
                           : fmt::format("its {} pods have room on other nodes", pods.size()))},
         look.now);
}

}  // namespace nos::controllers
