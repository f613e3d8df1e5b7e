// Removes empty nodes: each pool is asked exactly once per node, whatever fails on the way.
//
// The node is marked with the count that its pool should want, then the pool is asked, then the
// node is marked as certainly requested (kTold). After a crash in between, the mark and the pool's
// wanted count show whether the pool has been asked.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/autoscaler/internal.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {
namespace {

// A pod on the node that a removal would disturb; "".
std::string WhoIsOn(const cluster::Node& node, const reconcile::Listers& view,
                    const planning::MobilityRules& rules) {
  const auto pods = view.pods.Snapshot();
  for (const auto& pod : *pods) {
    if (pod->node_name != node.meta.name) continue;
    if (MobilityOf(*pod, rules).kind != planning::Mobility::kGoes) return pod->Key();
  }
  return "";
}

}  // namespace

// Returns true if anything was changed.
bool Autoscaler::Impl::FinishRemovals(Look& look) {
  bool news = false;
  for (const Node& node : look.nodes) {
    const auto removal = look.removals.find(node->meta.name);
    if (removal == look.removals.end() || node->meta.deleted) continue;
    news = FinishRemoval(look, node, removal->second) || news;
  }
  return news;
}

bool Autoscaler::Impl::FinishRemoval(Look& look, const Node& node, const Removal& removal) {
  if (removal.state == Removal::State::kEmptying) return false;
  Pool* pool = look.Find(removal.pool);
  const bool asked = removal.state == Removal::State::kAsked;
  const bool told = asked && removal.wanted.value_or(kTold) >= kTold;
  // The age is checked both ways because the time in a mark may be wrong.
  const Duration age = look.now - removal.since;
  const bool overdue = age > config_.removal_deadline || age < -config_.removal_deadline;
  if (pool == nullptr || !cluster::IsOf(*pool->pool, *node) ||
      pool->pool->signal != cluster::PoolSignal::kNone) {
    // Late: the infrastructure may now remove another node instead, one with running pods.
    if (told && !overdue) return false;
    const auto named = leaving_.find(node->meta.name);
    const PoolPtr own = named != leaving_.end() ? named->second
                        : pool == nullptr       ? nullptr
                                                : pool->pool;
    return Keep(look, own, node, "pool " + Shortened(removal.pool, 80) + " does not take it away")
        .ok();
  }
  if (asked) {
    leaving_.try_emplace(node->meta.name, pool->pool);
    if (told) return overdue && Overdue(look, *pool, node);
    if (!pool->known->fresh) return false;
    if (IsTold(removal, *pool->known)) return Confirm(look, *pool, node);
  }
  if (overdue) return Keep(look, pool->pool, node, "its pool could not be told in time").ok();
  return pool->known->MayWrite() && TellPool(look, *pool, node, removal);
}

bool Autoscaler::Impl::TellPool(Look& look, Pool& pool, const Node& node, const Removal& removal) {
  const PoolScale scale = *pool.known->scale;
  const std::string& name = node->meta.name;
  // Another client has already reduced the count, so some node will be removed: choose this one.
  const bool told = pool.nodes.Present() > scale.wanted;
  const int32_t left = told ? scale.wanted : scale.wanted - 1;
  if (!told && std::min(left, pool.nodes.there - 1) < pool.pool->min) {
    const std::string why =
        fmt::format("pool {} has its {} nodes at least", pool.pool->meta.name, pool.pool->min);
    return Keep(look, pool.pool, node, why).ok();
  }
  // The mark may be wrong: the node need not be empty.
  if (const std::string pod = WhoIsOn(*node, look.view, config_.relocations.rules); !pod.empty()) {
    return Keep(look, pool.pool, node, scheduling::PodText(pod) + " runs there").ok();
  }
  // Mark the node before asking the pool. The write fails with kConflict if the node has changed
  // meanwhile, for example because a pod was bound to it.
  const bool marked = removal.state == Removal::State::kAsked && removal.wanted == left;
  if (!marked && !MarkAsked(look, node, left)) return false;
  leaving_.try_emplace(name, pool.pool);
  const Status named = scaling_.Name(*pool.pool, *node, look.client);
  if (named.code() == Code::kInvalid) {
    return Keep(look, pool.pool, node, Shortened(named.message(), 500)).ok();
  }
  if (!named.ok()) {
    Log(LogLevel::kWarn, "failed to announce removal of Node to its NodePool, retrying",
        {{"node", name}, {"error", named.ToString()}});
    return false;
  }
  if (told) {
    NameToWebhook(look, *pool.pool, scale, name);
    --pool.nodes.there;
    ++pool.nodes.going;
    return true;
  }
  if (!WriteScale(look, pool, left, {name}).ok()) return false;
  telling_.Say({ReferenceTo(*pool.pool), kube::EventType::kNormal, "ScaledDown",
                fmt::format("Scaling down to {} Nodes from {}: Node {} is empty", left,
                            scale.wanted, name)});
  return true;
}

// The count alone does not say which node the webhook should remove.
void Autoscaler::Impl::NameToWebhook(Look& look, const cluster::NodePool& pool,
                                     const PoolScale& scale, const std::string& node) {
  if (pool.webhook.empty()) return;
  const Status named = scaling_.Write(pool, scale, scale.wanted, {node}, look.client);
  if (named.ok()) return;
  Log(LogLevel::kWarn, "failed to announce removal of Node to its NodePool",
      {{"node", node}, {"error", named.ToString()}});
}

// Marks the node as certainly requested, whatever the pool wants later.
bool Autoscaler::Impl::Confirm(Look& look, Pool& pool, const Node& node) {
  const Status named = scaling_.Name(*pool.pool, *node, look.client);
  if (!named.ok()) {  // its Machine may be deleted already
    Log(LogLevel::kDebug, "failed to announce removal of Node to its NodePool",
        {{"node", node->meta.name}, {"error", named.ToString()}});
  }
  return MarkAsked(look, node, kTold);
}

// Handles a node that should be deleted by now. If the pool has no more nodes than it wants,
// another node was removed instead.
bool Autoscaler::Impl::Overdue(Look& look, Pool& pool, const Node& node) {
  const Known& known = *pool.known;
  const std::string& name = node->meta.name;
  if (known.fresh && pool.nodes.Present() + pool.nodes.going <= known.scale->wanted) {
    const bool kept = Keep(look, pool.pool, node, "another one of its pool went in its place").ok();
    if (kept) {
      --pool.nodes.going;
      ++pool.nodes.there;
    }
    return kept;
  }
  if (!late_told_.insert(node->meta.uid).second) return false;
  telling_.Say({ReferenceToNode(name), kube::EventType::kWarning, "NodeNotRemoved",
                fmt::format("NodePool {} was asked {} ago to remove this Node and has not. Check "
                            "the component that creates its Nodes",
                            pool.pool->meta.name, FormatAge(config_.removal_deadline))});
  return false;
}

bool Autoscaler::Impl::MarkAsked(Look& look, const Node& node, int32_t wanted) {
  const Status marked = relocations_.MarkAsked(*node, wanted, look.client, look.now);
  if (marked.ok()) {
    marked_[node->meta.uid] = wanted;
    return true;
  }
  if (marked.code() == Code::kConflict) return false;  // the cache will show the current node
  Log(LogLevel::kWarn, "failed to mark Node for removal, retrying",
      {{"node", node->meta.name}, {"error", marked.ToString()}});
  return false;
}

// `pool` may be null.
Status Autoscaler::Impl::Keep(Look& look, const PoolPtr& pool, const Node& node,
                              const std::string& why) {
  Status kept = pool == nullptr ? Status::Ok() : scaling_.Unname(*pool, *node, look.client);
  if (kept.ok() || kept.code() == Code::kInvalid || kept.code() == Code::kNotFound) {
    kept = relocations_.Keep(*node, look.client);
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
  telling_.Say({ReferenceToNode(name), kube::EventType::kNormal, "NodeKept", why});
  Record({.action = "keep",
          .pool = pool == nullptr ? "" : pool->meta.name,
          .node = name,
          .message = fmt::format("Keeping Node {}: {}", name, why)},
         look.now);
  return kept;
}

void Autoscaler::Impl::NoteRemoved(Look& look) {
  std::erase_if(leaving_, [&](const auto& item) {
    const auto& [node, pool] = item;
    if (look.view.nodes.Get(node) != nullptr) return false;
    telling_.Say({ReferenceToNode(node), kube::EventType::kNormal, "NodeRemoved",
                  fmt::format("Removed by NodePool {}", Shortened(pool->meta.name, 80))});
    return true;
  });
}

}  // namespace nos::controllers
