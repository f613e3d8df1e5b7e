#include "controllers/autoscaler/pools/observer.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "cluster/node_template.h"
#include "controllers/events.h"
#include "controllers/metrics.h"
#include "planning/pool_nodes.h"

namespace nos::controllers {

PoolObserver::PoolObserver(const AutoscalerConfig& config, const gpu::Catalogue& catalogue,
                           DesiredCounts& counts, PoolStatuses& statuses, ScalingEvents& events,
                           DecisionSchedule& schedule)
    : config_(config),
      catalogue_(catalogue),
      counts_(counts),
      statuses_(statuses),
      events_(events),
      unreadable_(config.pool_sync_interval, events),
      counter_(config, catalogue, schedule) {}

Status PoolObserver::Observe(const ScalingCycle& cycle, const cluster::ClusterContext& context,
                             ObservedCluster& cluster) {
  // 1. Read how many nodes each pool wants, and assign nodes to pools.
  unreadable_.Observe(cycle, context);
  ListPools(cycle, context, cluster);
  // 2. Record templates, then count: whether a node matches its pool depends on the template.
  counter_.RecordTemplates(cycle, cluster);
  counter_.Count(cycle, cluster);
  // 3. Derive and write the state of each pool.
  Status error;
  for (ObservedPool& pool : cluster.pools) {
    Status updated = UpdateState(cycle, pool);
    if (!updated.ok()) error = std::move(updated);
  }
  return error;
}

void PoolObserver::ListPools(const ScalingCycle& cycle, const cluster::ClusterContext& context,
                             ObservedCluster& cluster) {
  const auto pools = statuses_.Current(context);
  std::set<std::string> names;
  for (const auto& pool : pools) names.insert(pool->meta.name);
  std::erase_if(memory_, [&](const auto& item) { return !names.contains(item.first); });
  counts_.BeginCycle();
  for (const auto& pool : pools) {
    cluster.pools.push_back({pool, &memory_[pool->meta.name], {}, {}, pool});
    counts_.Read(cycle, cluster.pools.back());
  }
  cluster.pool_of.reserve(cluster.nodes.size());
  for (const auto& node : cluster.nodes) {
    cluster.pool_of.push_back(planning::PoolOf(*node, pools));
  }
}

PoolSeen PoolObserver::Summarise(const ObservedPool& pool) const {
  PoolSeen seen{pool.pool, pool.nodes, std::nullopt, pool.memory->error(), ""};
  if (pool.HasSignal()) {
    seen.wanted = std::clamp(pool.pool->wanted, 0, cluster::kMaxPoolNodes);
  } else if (pool.memory->scale) {
    seen.wanted = pool.memory->scale->wanted;
  }
  if (cluster::IsDescribed(*pool.pool)) {
    const auto made = planning::NewNodeOf(*pool.pool, 0, catalogue_);
    if (!made.ok()) seen.problem = made.status().message();
  }
  std::string unreadable = unreadable_.ProblemOf(pool.pool->meta.name);
  if (!unreadable.empty()) seen.problem = std::move(unreadable);
  return seen;
}

Status PoolObserver::UpdateState(const ScalingCycle& cycle, ObservedPool& pool) {
  const PoolTimeouts timeouts{config_.min_provision_timeout, config_.backoff, config_.max_backoff};
  const PoolSeen seen = Summarise(pool);
  pool.state = StateOf(seen, timeouts, cycle.now);
  PoolState& state = pool.state;
  if (state.write_back && pool.HasSignal()) state.status.wanted = *state.write_back;
  // The status is written before the wanted count is reduced. Otherwise the reduced count would
  // look as if all nodes had arrived.
  const Status written = statuses_.Write(cycle, pool);
  if (!written.ok()) return written.Within("status of NodePool " + pool.pool->meta.name);
  if (state.failed) {
    events_.Add(events::NotDelivered(*pool.pool, state.status.ready));
    events_.Record({.action = "close",
                    .pool = pool.pool->meta.name,
                    .count = state.write_back ? seen.wanted.value_or(0) - *state.write_back : 0,
                    .message = state.status.ready.message},
                   cycle.now);
  }
  if (!state.write_back || pool.HasSignal() || !pool.memory->MayWrite()) return Status::Ok();
  const Status back = counts_.Write(cycle, pool, *state.write_back, {});
  return back.ok() ? back : back.Within("NodePool " + pool.pool->meta.name);
}

void SetPoolMetrics(const ObservedCluster& cluster, Metrics& metrics) {
  std::vector<std::pair<MetricLabels, double>> nodes, prices;
  for (const ObservedPool& pool : cluster.pools) {
    const std::string& name = pool.pool->meta.name;
    const auto put = [&](const char* state, int count) {
      nodes.push_back({{{"pool", name}, {"state", state}}, static_cast<double>(count)});
    };
    put("there", pool.nodes.there);
    put("coming", pool.state.now.coming);
    put("going", pool.nodes.going);
    const double price = static_cast<double>(cluster::MilliPriceOf(*pool.pool)) / 1000;
    prices.push_back({{{"pool", name}}, price * (pool.nodes.Present() + pool.nodes.going)});
  }
  metrics.SetAll(kPoolNodeCounts, nodes);
  metrics.SetAll(kPoolPrice, prices);
}

}  // namespace nos::controllers
