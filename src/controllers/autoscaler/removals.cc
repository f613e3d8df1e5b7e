#include "controllers/autoscaler/removals.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/events.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {
namespace {

// A pod on the node that a removal would disturb; "".
std::string FindPodOn(const cluster::Node& node, const reconcile::Listers& view,
                      const planning::MobilityRules& rules) {
  const auto pods = view.pods.Snapshot();
  for (const auto& pod : *pods) {
    if (pod->node_name != node.meta.name) continue;
    if (MobilityOf(*pod, rules).kind != planning::Mobility::kGoes) return pod->Key();
  }
  return "";
}

// True if another client has already reduced the count, so that some node of the pool will go.
bool IsReduced(const ObservedPool& pool) { return pool.nodes.Present() > pool.memory->Wanted(); }

}  // namespace

std::map<std::string, Removal> NodeRemovals::Observe(const std::vector<NodePtr>& nodes, Time now) {
  std::map<std::string, Removal> removals;
  for (const NodePtr& node : nodes) {
    const std::optional<Removal> removal = MarkOf(*node, now);
    if (removal) removals.emplace(node->meta.name, *removal);
  }
  if (marked_.empty() && reported_late_.empty()) return removals;
  std::set<std::string_view> uids;
  for (const NodePtr& node : nodes) uids.insert(node->meta.uid);
  std::erase_if(marked_, [&](const auto& item) { return !uids.contains(item.first); });
  std::erase_if(reported_late_, [&](const std::string& uid) { return !uids.contains(uid); });
  return removals;
}

std::optional<Removal> NodeRemovals::MarkOf(const cluster::Node& node, Time now) {
  std::optional<Removal> removal = RemovalOf(node);
  const auto ours = marked_.find(node.meta.uid);
  if (ours == marked_.end()) return removal;
  if (!removal) {
    marked_.erase(ours);
    return removal;
  }
  if (!ours->second) return std::nullopt;
  if (removal->state != Removal::State::kAsked) removal->since = now;
  removal->state = Removal::State::kAsked;
  removal->wanted = ours->second;
  return removal;
}

void NodeRemovals::ReportRemoved(const reconcile::Listers& view) {
  std::erase_if(leaving_, [&](const auto& item) {
    const auto& [node, pool] = item;
    if (view.nodes.Get(node) != nullptr) return false;
    events_.Add(events::NodeRemoved(node, pool->meta.name));
    return true;
  });
}

bool NodeRemovals::Continue(const ScalingCycle& cycle, ObservedCluster& cluster) {
  bool changed = false;
  for (const NodePtr& node : cluster.nodes) {
    const auto found = cluster.removals.find(node->meta.name);
    if (found == cluster.removals.end() || node->meta.deleted) continue;
    const Removal& removal = found->second;
    changed = ContinueOne(cycle, cluster.Find(removal.pool), node, removal) || changed;
  }
  return changed;
}

bool NodeRemovals::ContinueOne(const ScalingCycle& cycle, ObservedPool* pool, const NodePtr& node,
                               const Removal& removal) {
  if (removal.state == Removal::State::kEmptying) return false;
  const bool asked = removal.state == Removal::State::kAsked;
  const bool requested = asked && removal.wanted.value_or(kRemovalRequested) >= kRemovalRequested;
  // The age is checked both ways because the time in a mark may be wrong.
  const Duration age = cycle.now - removal.since;
  const bool overdue = age > config_.removal_timeout || age < -config_.removal_timeout;
  if (pool == nullptr || !cluster::IsOf(*pool->pool, *node) || pool->HasSignal()) {
    // Late: the infrastructure may now remove another node instead, one with running pods.
    if (requested && !overdue) return false;
    const auto named = leaving_.find(node->meta.name);
    const PoolPtr own = named != leaving_.end() ? named->second
                        : pool == nullptr       ? nullptr
                                                : pool->pool;
    return Keep(cycle, own, node, "NodePool " + Shortened(removal.pool, 80) + " does not remove it")
        .ok();
  }
  if (asked) {
    leaving_.try_emplace(node->meta.name, pool->pool);
    if (requested) return overdue && HandleOverdue(cycle, *pool, node);
    if (!pool->memory->fresh) return false;
    if (IsRequested(removal, *pool->memory)) {
      // The mark may be wrong, and a confirmed node is the next that its pool removes.
      const std::string pod = FindPodOn(*node, cycle.view, config_.relocations.rules);
      if (pod.empty()) return Confirm(cycle, *pool->pool, node);
      return Keep(cycle, pool->pool, node, scheduling::PodText(pod) + " runs on it").ok();
    }
  }
  if (overdue)
    return Keep(cycle, pool->pool, node, "its NodePool did not accept the removal in time").ok();
  return pool->memory->MayWrite() && Request(cycle, *pool, node, removal);
}

// The reason why the pool must keep the node; "": none.
std::string NodeRemovals::WhyNotNow(const ScalingCycle& cycle, const ObservedPool& pool,
                                    const cluster::Node& node) const {
  const int32_t left = std::min(pool.memory->Wanted() - 1, pool.nodes.there - 1);
  if (!IsReduced(pool) && left < pool.pool->min) {
    return fmt::format("NodePool {} has its minimum of {} nodes", pool.pool->meta.name,
                       pool.pool->min);
  }
  // The mark may be wrong: the node need not be empty.
  const std::string pod = FindPodOn(node, cycle.view, config_.relocations.rules);
  return pod.empty() ? "" : scheduling::PodText(pod) + " runs on it";
}

// A static NodePool of Karpenter that gets smaller loses its nodes without pods first, then those
// whose pods cost least to move, and finished pods count like running ones. Source:
// sigs.k8s.io/karpenter v1.14.1, pkg/controllers/static/deprovisioning. Returns true if the node
// has no finished pod left.
bool NodeRemovals::EvictFinishedPods(const ScalingCycle& cycle, const cluster::NodePool& pool,
                                     const cluster::Node& node) const {
  if (!pool.target.api_version.starts_with("karpenter.sh/")) return true;
  bool none = true;
  const auto pods = cycle.view.pods.Snapshot();
  for (const auto& pod : *pods) {
    if (pod->node_name != node.meta.name || !pod->Finished()) continue;
    none = false;
    if (pod->meta.deleted) continue;
    const Status evicted = cycle.client.Evict(pod->meta.ns, pod->meta.name, pod->meta.uid);
    if (evicted.ok() || evicted.code() == Code::kNotFound) continue;
    Log(LogLevel::kWarn, "failed to evict finished Pod, retrying",
        {{"pod", pod->Key()}, {"error", evicted.ToString()}});
  }
  return none;
}

bool NodeRemovals::Request(const ScalingCycle& cycle, ObservedPool& pool, const NodePtr& node,
                           const Removal& removal) {
  if (!pool.memory->scale) return false;
  const PoolScale scale = *pool.memory->scale;
  const std::string& name = node->meta.name;
  if (const std::string why = WhyNotNow(cycle, pool, *node); !why.empty()) {
    return Keep(cycle, pool.pool, node, why).ok();
  }
  if (!EvictFinishedPods(cycle, *pool.pool, *node)) return false;
  // Some node will be removed anyway: choose this one.
  const bool reduced = IsReduced(pool);
  const int32_t left = reduced ? scale.wanted : scale.wanted - 1;
  // Mark the node before asking the pool. The write fails with kConflict if the node has changed
  // meanwhile, for example because a pod was bound to it.
  const bool marked = removal.state == Removal::State::kAsked && removal.wanted == left;
  if (!marked && !Mark(cycle, node, left)) return false;
  leaving_.try_emplace(name, pool.pool);
  const Status named = scaling_.Name(*pool.pool, *node, cycle.client);
  if (named.code() == Code::kInvalid) {
    return Keep(cycle, pool.pool, node, Shortened(named.message(), 500)).ok();
  }
  if (!named.ok()) {
    Log(LogLevel::kWarn, "failed to announce removal of Node to its NodePool, retrying",
        {{"node", name}, {"error", named.ToString()}});
    return false;
  }
  if (reduced) {
    NameToWebhook(cycle, *pool.pool, scale, name);
    --pool.nodes.there;
    ++pool.nodes.going;
    return true;
  }
  if (!counts_.Write(cycle, pool, left, {name}).ok()) return false;
  events_.Add(events::ScaledDown(*pool.pool, left, scale.wanted, name));
  return true;
}

// The count alone does not say which node the webhook should remove.
void NodeRemovals::NameToWebhook(const ScalingCycle& cycle, const cluster::NodePool& pool,
                                 const PoolScale& scale, const std::string& node) {
  if (pool.webhook.empty()) return;
  const Status named = scaling_.Write(pool, scale, scale.wanted, {node}, cycle.client);
  if (named.ok()) return;
  Log(LogLevel::kWarn, "failed to announce removal of Node to its NodePool",
      {{"node", node}, {"error", named.ToString()}});
}

// Marks the node as certainly requested, whatever the pool wants later.
bool NodeRemovals::Confirm(const ScalingCycle& cycle, const cluster::NodePool& pool,
                           const NodePtr& node) {
  const Status named = scaling_.Name(pool, *node, cycle.client);
  if (!named.ok()) {  // its Machine may be deleted already
    Log(LogLevel::kDebug, "failed to announce removal of Node to its NodePool",
        {{"node", node->meta.name}, {"error", named.ToString()}});
  }
  return Mark(cycle, node, kRemovalRequested);
}

// Handles a node that should be deleted by now. If the pool has no more nodes than it wants,
// another node was removed instead.
bool NodeRemovals::HandleOverdue(const ScalingCycle& cycle, ObservedPool& pool,
                                 const NodePtr& node) {
  const PoolMemory& memory = *pool.memory;
  if (memory.fresh && pool.nodes.Present() + pool.nodes.going <= memory.Wanted()) {
    const bool kept =
        Keep(cycle, pool.pool, node, "its NodePool removed another node instead").ok();
    if (kept) {
      --pool.nodes.going;
      ++pool.nodes.there;
    }
    return kept;
  }
  if (!reported_late_.insert(node->meta.uid).second) return false;
  events_.Add(
      events::NodeNotRemoved(node->meta.name, pool.pool->meta.name, config_.removal_timeout));
  return false;
}

bool NodeRemovals::Mark(const ScalingCycle& cycle, const NodePtr& node, int32_t wanted) {
  const Status marked = relocations_.MarkAsked(*node, wanted, cycle.client, cycle.now);
  if (marked.ok()) {
    marked_[node->meta.uid] = wanted;
    return true;
  }
  if (marked.code() == Code::kConflict) return false;  // the cache will show the current node
  Log(LogLevel::kWarn, "failed to mark Node for removal, retrying",
      {{"node", node->meta.name}, {"error", marked.ToString()}});
  return false;
}

Status NodeRemovals::Keep(const ScalingCycle& cycle, const PoolPtr& pool, const NodePtr& node,
                          const std::string& why) {
  Status kept = pool == nullptr ? Status::Ok() : scaling_.Unname(*pool, *node, cycle.client);
  if (kept.ok() || kept.code() == Code::kInvalid || kept.code() == Code::kNotFound) {
    kept = relocations_.Keep(*node, cycle.client);
  }
  const std::string& name = node->meta.name;
  if (!kept.ok()) {
    if (kept.code() == Code::kConflict) return kept;  // the cache will show the current node
    Log(LogLevel::kWarn, "failed to cancel removal of Node, retrying",
        {{"node", name}, {"error", kept.ToString()}});
    return kept;
  }
  marked_[node->meta.uid] = std::nullopt;
  leaving_.erase(name);
  kube::EventNote event = events::NodeKept(name, why);
  events_.Record({.action = "keep",
                  .pool = pool == nullptr ? "" : pool->meta.name,
                  .node = name,
                  .message = event.message},
                 cycle.now);
  events_.Add(std::move(event));
  return kept;
}

}  // namespace nos::controllers
