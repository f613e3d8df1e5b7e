#include "sim/world/run/chaos_pools.h"

#include <fmt/format.h>

#include <algorithm>

#include "planning/growth.h"

namespace nos::sim {
namespace {

using std::chrono::seconds;

}  // namespace

controllers::AutoscalerConfig ChaosPools::DrawAutoscaler(FaultRates& rates) {
  const auto rate = [&](double most) { return random_.Chance(0.4) ? 0 : random_.Uniform() * most; };
  rates.node_late = rate(0.4);
  rates.node_never = rate(0.4);
  rates.node_wrong = rate(0.3);
  rates.node_other = rate(0.5);
  rates.scaling_refused_per_hour = rate(30);
  controllers::AutoscalerConfig config;
  config.settle = seconds(2);
  config.pool_sync_interval = seconds(10);
  config.min_provision_timeout = seconds(40);
  config.backoff = seconds(20);
  config.max_backoff = std::chrono::minutes(2);
  config.shrink_after = seconds(20 + random_.Below(60));
  config.removal_timeout = std::chrono::minutes(3);
  config.moves = random_.Chance(0.5);
  config.move_after = seconds(15);
  config.max_moves_per_hour = config.max_moves_per_namespace = 100;
  config.relocations.hold_timeout = std::chrono::minutes(1);
  config.relocations.drain_timeout = std::chrono::minutes(2);
  config.relocations.successor_timeout = seconds(20);
  return config;
}

Status ChaosPools::Add(World& world, std::vector<const gpu::Model*>& models) {
  const auto& known = world.catalogue().models();
  for (uint64_t i = 1 + random_.Below(3); i > 0; --i) {
    PoolSpec pool;
    pool.name = fmt::format("pool-{}", i);
    const gpu::Model& model = *known[random_.Below(known.size())];
    pool.node.gpus.assign(1 + random_.Below(2), GpuSpec{model.name(), {}});
    pool.node.cpu = Quantity::FromValue(8 + static_cast<int64_t>(random_.Below(25)));
    pool.min = static_cast<int>(random_.Below(2));
    pool.nodes = pool.min + static_cast<int>(random_.Below(2));
    pool.max = 2 + static_cast<int>(random_.Below(3));
    pool.price = Quantity::FromMilli(static_cast<int64_t>(500 * (1 + random_.Below(6))));
    pool.start = seconds(5 + random_.Below(40));
    pool.machines = random_.Chance(0.5);
    NOS_RETURN_IF_ERROR(world.AddPool(pool));
    auto read = std::make_shared<cluster::NodePool>();
    const Json object = NodePoolObject(pool);
    NOS_RETURN_IF_ERROR(cluster::ReadNodePool(object, *read));
    pools_.push_back(std::move(read));
    models.push_back(&model);
  }
  return Status::Ok();
}

std::string ChaosPools::DrawOwner(const std::string& pod) { return random_.Chance(0.6) ? pod : ""; }

std::vector<std::string> ChaosPools::Restless(
    World& world, const std::vector<std::shared_ptr<const cluster::Pod>>& waiting) const {
  const auto pods = world.Pods();
  std::vector<std::string> why = MoveChecker::Leftovers(world.Nodes(), pods);
  const std::vector<PoolState> states = world.infrastructure().States();
  std::vector<planning::NodePoolState> now;
  for (const auto& pool : pools_) {
    const PoolState& state = *std::ranges::find(states, pool->meta.name, &PoolState::name);
    if (state.coming > 0)
      why.push_back(fmt::format("{} nodes of {} come", state.coming, state.name));
    if (state.wanted < state.min) {
      why.push_back(fmt::format("{} lacks nodes to its minimum", state.name));
    }
    now.push_back({pool, state.nodes, state.coming, ""});
  }
  if (!why.empty() || waiting.empty()) return why;
  const auto snapshot = cluster::ClusterSnapshot::Build(world.Nodes(), pods, world.catalogue());
  planning::PlanOptions options;
  options.now = world.Now();
  const planning::GrowthPlan plan =
      planning::PlanGrowth(snapshot, waiting, now, world.controllers().framework(), options);
  for (const planning::NewNode& node : plan.nodes) {
    if (node.IsThere()) continue;
    for (const int pod : node.pods) {
      why.push_back(fmt::format("{} would run on a node of {}", waiting[pod]->Key(),
                                now[static_cast<size_t>(node.pool)].pool->meta.name));
    }
  }
  return why;
}

}  // namespace nos::sim
