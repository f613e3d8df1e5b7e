#include "controllers/autoscaler/pools/node_counter.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "cluster/node_template.h"

namespace nos::controllers {
namespace {

// Tolerated clock skew. A node that was created further in the future does not count as starting.
constexpr Duration kClocksDiffer = std::chrono::minutes(5);

}  // namespace

// A node that is still starting is not used if a template is known already: its agent may not have
// reported its GPUs yet.
void NodeCounter::RecordTemplates(const ScalingCycle& cycle, ObservedCluster& cluster) {
  const uint64_t version = cycle.view.nodes.Version();
  for (size_t p = 0; p < cluster.pools.size(); ++p) {
    ObservedPool& pool = cluster.pools[p];
    if (!pool.as_read->learns) continue;
    PoolMemory& memory = *pool.memory;
    if (!memory.learned) memory.learned = pool.as_read->learned;
    pool.pool = WithRecordedTemplate(pool);
    const bool described = cluster::IsDescribed(*pool.pool);
    const bool seen = described || memory.learned_from == version;
    if (seen && cycle.now < memory.learn_again) continue;
    memory.learned_from = version;
    memory.learn_again = cycle.now + config_.pool_sync_interval;
    std::vector<std::shared_ptr<const cluster::Node>> nodes;
    for (size_t n = 0; n < cluster.nodes.size(); ++n) {
      if (cluster.pool_of[n] != static_cast<int>(p)) continue;
      const auto& node = cluster.nodes[n];
      const MissingRequirements& missing = missing_.Of(node, pool.pool);
      if (!described || !IsStarting(*node, *pool.pool, missing, cycle.now)) nodes.push_back(node);
    }
    const auto pods = cycle.view.pods.Snapshot();
    memory.learned = cluster::RecordTemplate(*pool.pool, nodes, *pods);
    pool.pool = WithRecordedTemplate(pool);
  }
}

// True if a shortfall of the node may still disappear.
bool NodeCounter::IsStarting(const cluster::Node& node, const cluster::NodePool& pool,
                             const MissingRequirements& missing, Time now) const {
  const PoolTimeouts timeouts{config_.min_provision_timeout, {}, {}};
  const Time created = node.meta.created;
  return missing.Any() && now < created + ProvisionTimeoutOf(pool, timeouts) &&
         created < now + kClocksDiffer;
}

void NodeCounter::Count(const ScalingCycle& cycle, ObservedCluster& cluster) {
  const PoolTimeouts timeouts{config_.min_provision_timeout, {}, {}};
  std::map<std::string_view, std::pair<ObservedPool*, PoolNodes::Wrong>> closed;
  for (size_t n = 0; n < cluster.nodes.size(); ++n) {
    if (cluster.pool_of[n] < 0) continue;
    const auto& node = cluster.nodes[n];
    const std::string& name = node->meta.name;
    ObservedPool& pool = cluster.pools[static_cast<size_t>(cluster.pool_of[n])];
    const auto removal = cluster.removals.find(name);
    const bool requested =
        removal != cluster.removals.end() && IsRequested(removal->second, *pool.memory);
    if (node->meta.deleted || requested) {
      ++pool.nodes.going;
      continue;
    }
    pool.nodes.newest = std::max(pool.nodes.newest, node->meta.created);
    const MissingRequirements& missing = missing_.Of(node, pool.pool);
    if (IsStarting(*node, *pool.pool, missing, cycle.now)) {
      ++pool.nodes.starting;
      cluster.starting.insert(name);
      schedule_.DecideBy(node->meta.created + ProvisionTimeoutOf(*pool.pool, timeouts));
      continue;
    }
    ++pool.nodes.there;
    if (!missing.readiness.empty()) {
      closed[name] = {&pool, {name, missing.readiness, node->meta.created}};
      continue;
    }
    if (missing.substance.empty()) continue;
    // Contradicting the spec is an error of the node or pool. Having less than the recorded
    // template is not: the template was never promised.
    cluster::NodePool said = *pool.as_read;
    said.learned.reset();
    const std::string wrong = MissingRequirementsOf(*node, said, catalogue_).substance;
    auto& list = wrong.empty() ? pool.nodes.less : pool.nodes.wrong;
    list.push_back({name, wrong.empty() ? missing.substance : wrong, node->meta.created});
  }
  missing_.Forget();
  // A node with running pods is usable: they tolerate its taint, or it was Ready before.
  const auto pods = cycle.view.pods.Snapshot();
  if (!closed.empty()) {
    for (const auto& pod : *pods) {
      const auto on = closed.find(pod->node_name);
      if (on == closed.end()) continue;
      const planning::Mobility mobility = MobilityOf(*pod, config_.relocations.rules);
      if (mobility.kind != planning::Mobility::kGoes) closed.erase(on);
    }
  }
  for (auto& [name, one] : closed) one.first->nodes.closed.push_back(std::move(one.second));
}

}  // namespace nos::controllers
