#include "planning/scaling/growth_world.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "planning/pool_nodes.h"
#include "planning/scaling/growth_hosts.h"
#include "planning/translation/live_filters.h"

namespace nos::planning {
namespace {

using NodePtr = std::shared_ptr<const cluster::Node>;

NodeType TypeOf(int index, const NodePoolState& now) {
  const cluster::NodePool& pool = *now.pool;
  NodeType type{.pool = index, .price = cluster::MilliPriceOf(pool)};
  type.coming = std::max(now.coming, 0);
  const int there = std::max(now.nodes, 0) + type.coming;
  if (!now.closed.empty()) return type;
  type.due = LacksToMinimum(now);
  type.room = std::max(0, pool.max - there - type.due);
  return type;
}

// Reduces the translation to these nodes, in this order.
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

// The cluster context with these nodes only.
cluster::ClusterSnapshot WithNodesOnly(const cluster::ClusterSnapshot& snapshot,
                                       const GangHosts& hosts) {
  if (!hosts.names.empty()) {
    cluster::ClusterSnapshot some = snapshot;
    some.KeepNodes(
        [&](const cluster::NodeInfo& info) { return hosts.names.contains(info.node->meta.name); });
    return some;
  }
  auto empty = cluster::ClusterSnapshot::Build({}, {}, snapshot.catalogue());
  if (snapshot.ShareContext() != nullptr) empty.ChangeContext() = snapshot.context();
  return empty;
}

// Removes free instances that may be destroyed, because only the capacity matters.
void FreeGpus(int node, Problem& problem) {
  const ProblemNode& where = problem.nodes[node];
  for (int g = where.first_gpu; g < where.first_gpu + where.gpu_count; ++g) {
    if (!problem.gpus[g].may_repartition) continue;
    problem.gpus[g].free = 0;
    problem.gpus[g].free_shares.clear();
  }
}

// Existing nodes come first, so that they are filled first.
void ChooseTypes(const GangHosts& hosts, const std::map<std::string, int>& pool_of,
                 const std::vector<NodePoolState>& pools, GrowthWorld& world) {
  std::vector<int> there, kept;
  std::vector<NodeType> types;
  for (size_t n = 0; n < world.types.nodes.size(); ++n) {
    const std::string& name = world.types.nodes[n]->node->meta.name;
    const auto pool = pool_of.find(name);
    if (pool != pool_of.end()) {
      kept.push_back(static_cast<int>(n));
      types.push_back(TypeOf(pool->second, pools[pool->second]));
    } else if (hosts.names.contains(name)) {
      there.push_back(static_cast<int>(n));
      world.node_types.push_back({.pool = NodeType::kThere, .coming = 1});
    }
  }
  kept.insert(kept.begin(), there.begin(), there.end());
  world.node_types.insert(world.node_types.end(), types.begin(), types.end());
  KeepNodes(kept, world.types);
  for (size_t t = 0; t < there.size(); ++t) {
    FreeGpus(static_cast<int>(t), world.types.problem);
  }
}

}  // namespace

int LacksToMinimum(const NodePoolState& now) {
  if (!now.closed.empty()) return 0;
  return std::max(0, now.pool->min - std::max(now.nodes, 0) - std::max(now.coming, 0));
}

GrowthWorld MakeGrowthWorld(const cluster::ClusterSnapshot& snapshot, Pods unplaced,
                            const std::vector<NodePoolState>& pools,
                            const scheduling::FrameworkChoice& frameworks,
                            const PlanOptions& options, bool beside) {
  GrowthWorld world;
  world.problems.resize(pools.size());
  world.live = AnyIsLive(snapshot, unplaced, frameworks);
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
  GangHosts hosts;
  if (!nodes.empty() && beside) hosts = HostsForGangs(snapshot, unplaced, frameworks, options);
  world.has_all_hosts = hosts.all;
  world.snapshot = world.live ? snapshot : WithNodesOnly(snapshot, hosts);
  world.snapshot.AddNodes(nodes);
  world.types = Translate(world.snapshot, unplaced, frameworks, options);
  ChooseTypes(hosts, pool_of, pools, world);
  return world;
}

std::vector<std::string> NamesOf(const GrowthWorld& world, const std::vector<NodePoolState>& pools,
                                 const Bins& bins) {
  std::vector<std::string> names(bins.size());
  std::vector<int> next(pools.size());
  for (const bool paid : {false, true}) {
    for (size_t b = 0; b < bins.size(); ++b) {
      if (bins[b].paid != paid) continue;
      const NodeType& type = world.node_types[bins[b].type];
      const int pool = type.pool;
      if (type.IsThere()) {
        names[b] = world.types.nodes[bins[b].type]->node->meta.name;
        continue;
      }
      names[b] = NewNodeName(pools[pool].pool->meta.name, next[pool]++);
    }
  }
  return names;
}

BinWorld MakeBinWorld(const GrowthWorld& world, const std::vector<NodePoolState>& pools,
                      const Bins& bins) {
  BinWorld made{world.snapshot, {}};
  const std::vector<std::string> names = NamesOf(world, pools, bins);
  // The example nodes of the types are replaced by the bins' nodes.
  std::set<std::string_view> new_ones;
  for (size_t t = 0; t < world.node_types.size(); ++t) {
    if (world.node_types[t].IsThere()) continue;
    new_ones.insert(world.types.nodes[t]->node->meta.name);
  }
  made.snapshot.KeepNodes(
      [&](const cluster::NodeInfo& info) { return !new_ones.contains(info.node->meta.name); });
  std::vector<NodePtr> nodes;
  for (size_t b = 0; b < bins.size(); ++b) {
    if (world.node_types[bins[b].type].IsThere()) continue;
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
