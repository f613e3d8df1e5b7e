#include "controllers/pool_standing.h"

#include <algorithm>
#include <utility>

#include "base/millis.h"
#include "base/text.h"
#include "cluster/node_template.h"
#include "controllers/autoscaler.h"
#include "controllers/relocations.h"
#include "planning/pool_nodes.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = 1000;  // bytes of text from other systems
constexpr const char* kInvalid = "Invalid";

bool IsGoing(const cluster::Node& node) {
  return node.meta.deleted.has_value() || node.meta.annotations.contains(kRemoval);
}

}  // namespace

PoolStanding StandingOf(const cluster::NodePool& pool, Time now) {
  const cluster::Condition* ready = cluster::FindCondition(pool.conditions, kPoolReady);
  const bool fails = ready != nullptr && ready->status == "False";
  const std::string why = ready != nullptr ? ready->message : "";
  if (fails && ready->reason == kInvalid) return {"invalid", why};
  if (pool.closed_until && *pool.closed_until > now) return {"closed", why};
  if (!cluster::IsDescribed(pool)) return {kUndescribed, cluster::WhyNotDescribed()};
  if (ready == nullptr) return {"unknown", "no autoscaler has looked at it"};
  // A node exists now and the autoscaler has not updated the condition yet.
  if (ready->reason == kNoTemplate) return {"ready", ""};
  return {fails ? "failing" : "ready", why};
}

std::vector<PoolCount> CountPools(
    const std::vector<std::shared_ptr<const cluster::Node>>& nodes,
    const std::vector<std::shared_ptr<const cluster::NodePool>>& pools) {
  std::vector<PoolCount> counts;
  counts.reserve(pools.size());
  for (const auto& pool : pools) counts.push_back({pool, 0, 0, 0});
  for (const auto& node : nodes) {
    const int pool = planning::PoolOf(*node, pools);
    if (pool >= 0) ++(IsGoing(*node) ? counts[pool].going : counts[pool].nodes);
  }
  for (PoolCount& count : counts) {
    const int64_t missing = int64_t{count.pool->wanted} - count.nodes;
    count.coming = static_cast<int>(std::clamp<int64_t>(missing, 0, cluster::kMaxPoolNodes));
  }
  return counts;
}

bool CountsOtherwise(const cluster::Node* before, const cluster::Node* after) {
  if (before == nullptr || after == nullptr) return before != after;
  return IsGoing(*before) != IsGoing(*after) || before->meta.labels != after->meta.labels;
}

JsonObject PoolRecord(const PoolCount& count, Time now) {
  const cluster::NodePool pool = cluster::WithTemplate(*count.pool);
  const PoolStanding standing = StandingOf(pool, now);
  JsonObject record{{"kind", "pool"},
                    {"id", pool.meta.name},
                    {"name", pool.meta.name},
                    {"gpu",
                     {{"model", pool.gpu.model},
                      {"product", pool.gpu.product},
                      {"count", pool.gpu.count},
                      {"partitioning", cluster::NameOf(pool.gpu.partitioning)}}},
                    {"nodes", count.nodes},
                    {"coming", count.coming},
                    {"going", count.going},
                    {"wanted", pool.wanted},
                    {"min", pool.min},
                    {"max", pool.max},
                    {"price", static_cast<double>(cluster::MilliPriceOf(pool)) / 1000},
                    {"failures", pool.failures},
                    {"state", standing.state},
                    {"why", Shortened(standing.why, kMaxText)}};
  if (pool.closed_until && standing.state == "closed")
    record["closed_until"] = ToMillis(*pool.closed_until);
  return record;
}

Status ReadPoolToReport(JsonSource json, cluster::NodePool& to) {
  Status read = cluster::ReadNodePool(json, to);
  if (read.ok() || to.meta.name.empty()) return read;
  cluster::NodePool bare;
  bare.meta = std::move(to.meta);
  bare.conditions = {{kPoolReady, "False", kInvalid, read.message(), {}}};
  to = std::move(bare);
  return Status::Ok();
}

}  // namespace nos::controllers
