#include "planning/growth_world.h"

#include <algorithm>
#include <map>
#include <memory>

#include "planning/live_filters.h"
#include "planning/pool_nodes.h"

namespace nos::planning {
namespace {

using NodePtr = std::shared_ptr<const cluster::Node>;

NodeType TypeOf(int index, const PoolNow& now) {
  const cluster::NodePool& pool = *now.pool;
  NodeType type{.pool = index, .price = cluster::MilliPriceOf(pool)};
  type.coming = std::max(now.coming, 0);
  const int there = std::max(now.nodes, 0) + type.coming;
  if (!now.closed.empty()) return type;
  type.due = LacksToMinimum(now);
  type.room = std::max(0, pool.max - there - type.due);
  return type;
}

// Of the translation only these nodes, in its order.
void KeepNodes(const std::vector<int>& nodes, Translation& t) {
  t.problem = WithNodes(t.problem, nodes);
  std::vector<const cluster::NodeInfo*> infos;
  infos.reserve(nodes.size());
  for (const int n : nodes) infos.push_back(t.nodes[n]);
  t.nodes = std::move(infos);
}

bool AnyIsLive(const cluster::ClusterSnapshot& snapshot, Pods pods,
               const scheduling::FrameworkChoice& frameworks) {
  const LivePods live(snapshot, pods, frameworks);
  return std::ranges::any_of(pods, [&](const auto& pod) { return live.Has(*pod); });
}

// What is around, and no nodes.
cluster::ClusterSnapshot WithoutNodes(const cluster::ClusterSnapshot& snapshot) {
  auto empty = cluster::ClusterSnapshot::Build({}, {}, snapshot.catalogue());
  if (snapshot.ShareAround() != nullptr) empty.ChangeAround() = snapshot.around();
  return empty;
}

}  // namespace

int LacksToMinimum(const PoolNow& now) {
  if (!now.closed.empty()) return 0;
  return std::max(0, now.pool->min - std::max(now.nodes, 0) - std::max(now.coming, 0));
}

GrowthWorld MakeGrowthWorld(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                            const std::vector<PoolNow>& pools,
                            const scheduling::FrameworkChoice& frameworks,
                            const PlanOptions& options) {
  GrowthWorld world;
  world.problems.resize(pools.size());
  world.live = AnyIsLive(snapshot, unplaced, frameworks);
  world.snapshot = world.live ? snapshot : WithoutNodes(snapshot);
  std::vector<NodePtr> nodes;
  std::map<std::string, int> pool_of;  // by name of the node
  for (size_t p = 0; p < pools.size(); ++p) {
    auto node = NewNodeOf(*pools[p].pool, 0, snapshot.catalogue());
    if (!node.ok()) {
      world.problems[p] = node.status().message();
    } else if (!pool_of.emplace((*node)->meta.name, static_cast<int>(p)).second) {
      world.problems[p] = "there is another pool of this name";
    } else {
      nodes.push_back(*std::move(node));
    }
  }
  world.snapshot.AddNodes(nodes);
  world.types = Translate(world.snapshot, unplaced, frameworks, options);
  std::vector<int> kept;
  for (size_t n = 0; n < world.types.nodes.size(); ++n) {
    const auto pool = pool_of.find(world.types.nodes[n]->node->meta.name);
    if (pool == pool_of.end()) continue;
    kept.push_back(static_cast<int>(n));
    world.node_types.push_back(TypeOf(pool->second, pools[pool->second]));
  }
  KeepNodes(kept, world.types);
  return world;
}

std::vector<std::string> NamesOf(const GrowthWorld& world, const std::vector<PoolNow>& pools,
                                 const Bins& bins) {
  std::vector<std::string> names(bins.size());
  std::vector<int> next(pools.size());
  for (const bool paid : {false, true}) {
    for (size_t b = 0; b < bins.size(); ++b) {
      if (bins[b].paid != paid) continue;
      const int pool = world.node_types[bins[b].type].pool;
      names[b] = NewNodeName(pools[pool].pool->meta.name, next[pool]++);
    }
  }
  return names;
}

BinWorld MakeBinWorld(const GrowthWorld& world, const std::vector<PoolNow>& pools,
                      const Bins& bins) {
  BinWorld made{world.snapshot, {}};
  const std::vector<std::string> names = NamesOf(world, pools, bins);
  // The types' own nodes are among the new ones, or not there.
  std::map<std::string_view, bool> is_type;
  for (const cluster::NodeInfo* node : world.types.nodes) is_type[node->node->meta.name] = true;
  made.snapshot.KeepNodes(
      [&](const cluster::NodeInfo& info) { return !is_type.contains(info.node->meta.name); });
  std::vector<NodePtr> nodes;
  for (size_t b = 0; b < bins.size(); ++b) {
    cluster::Node node = *world.types.nodes[bins[b].type]->node;
    node.meta.name = node.meta.labels["kubernetes.io/hostname"] = names[b];
    nodes.push_back(std::make_shared<const cluster::Node>(std::move(node)));
  }
  made.snapshot.AddNodes(nodes);
  Translation& t = made.translation;
  t.problem = WithNodes(world.types.problem, TypesOf(bins));
  t.pending = world.types.pending;
  t.catalogue = world.types.catalogue;
  t.class_of = world.types.class_of;
  t.gang_of = world.types.gang_of;
  t.gangs = world.types.gangs;
  t.members = world.types.members;
  t.dimensions = world.types.dimensions;
  t.slice_names = world.types.slice_names;
  t.row_pod = world.types.row_pod;
  t.live_rows = world.types.live_rows;
  for (const std::string& name : names) t.nodes.push_back(made.snapshot.Find(name));
  return made;
}

}  // namespace nos::planning
