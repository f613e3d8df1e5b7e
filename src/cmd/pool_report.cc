#include "cmd/pool_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "controllers/autoscaler.h"
#include "controllers/relocations.h"
#include "planning/pool_nodes.h"

namespace nos::cmd {
namespace {

// "16:04 UTC"; beyond a day, with the date.
std::string UntilText(Time until, Time now) {
  const std::string text = FormatTime(until);
  return until - now < std::chrono::hours(24) ? text.substr(11, 5) + " UTC" : text;
}

struct State {
  std::string name;   // "ready", "closed", "invalid", "failing", "unknown"
  std::string until;  // of closed
  std::string why;
  std::string Text() const {
    return name + (until.empty() ? "" : " until " + until) + (why.empty() ? "" : ": " + why);
  }
};

State StateOf(const cluster::NodePool& pool, Time now) {
  const cluster::Condition* ready =
      cluster::FindCondition(pool.conditions, controllers::kPoolReady);
  const std::string why = ready != nullptr && ready->status == "False" ? ready->message : "";
  if (ready != nullptr && ready->status == "False" && ready->reason == "Invalid") {
    return {"invalid", "", why};
  }
  if (pool.closed_until && *pool.closed_until > now) {
    return {"closed", UntilText(*pool.closed_until, now), why};
  }
  if (ready == nullptr) return {"unknown", "", "no autoscaler has looked at it"};
  return {ready->status == "False" ? "failing" : "ready", "", why};
}

// Before an autoscaler has looked at it, too: what it would find wrong.
State StateOf(const cluster::NodePool& pool, const gpu::Catalogue& catalogue, Time now) {
  State state = StateOf(pool, now);
  if (state.name != "unknown") return state;
  const auto made = planning::NewNodeOf(pool, 0, catalogue);
  return made.ok() ? state : State{"invalid", "", made.status().message()};
}

std::string GpuText(const cluster::PoolGpus& gpu) {
  if (gpu.count == 0) return "-";
  return fmt::format("{} x {}", gpu.count, gpu.model.empty() ? gpu.product : gpu.model);
}

std::string ModeText(const cluster::PoolGpus& gpu) {
  if (gpu.count == 0) return "-";
  if (gpu.partitioning == cluster::Partitioning::kNone) return "whole";
  return std::string(cluster::NameOf(gpu.partitioning));
}

bool IsGoing(const cluster::Node& node) {
  return node.meta.deleted.has_value() || node.meta.annotations.contains(controllers::kRemoval);
}

}  // namespace

std::vector<PoolCount> CountPools(const cluster::ClusterSnapshot& snapshot,
                                  const std::vector<SharedPool>& pools) {
  std::vector<PoolCount> counts;
  counts.reserve(pools.size());
  for (const SharedPool& pool : pools) counts.push_back({pool, 0, 0, 0});
  for (size_t n = 0; n < snapshot.size(); ++n) {
    const cluster::Node& node = *snapshot.node(n).node;
    const int pool = planning::PoolOf(node, pools);
    if (pool >= 0) ++(IsGoing(node) ? counts[pool].going : counts[pool].nodes);
  }
  for (PoolCount& count : counts) {
    count.coming = std::clamp(count.pool->wanted - count.nodes, 0, cluster::kMostPoolNodes);
  }
  return counts;
}

planning::PoolNow NowOf(const PoolCount& count, Time now) {
  const State state = StateOf(*count.pool, now);
  const bool open = state.name == "ready" || state.name == "unknown";
  return {count.pool, count.nodes, count.coming, open ? "" : state.Text()};
}

std::string PriceText(int64_t milli_price) {
  std::string text = fmt::format("{}.{:03}", milli_price / 1000, milli_price % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Printout ReportPools(const LiveCluster& live, Time now) {
  Printout out{
      TextTable({"NAME", "GPU", "MODE", "NODES", "COMING", "MIN", "MAX", "PRICE", "STATE"})};
  const std::vector<PoolCount> counts = CountPools(live.snapshot, live.pools);
  for (const PoolCount& count : counts) {
    const cluster::NodePool& pool = *count.pool;
    const State state = StateOf(pool, live.snapshot.catalogue(), now);
    const int64_t price = cluster::MilliPriceOf(pool);
    const std::string nodes = count.going == 0
                                  ? fmt::to_string(count.nodes)
                                  : fmt::format("{} ({} going)", count.nodes, count.going);
    out.table.AddRow({pool.meta.name, GpuText(pool.gpu), ModeText(pool.gpu), nodes,
                      fmt::to_string(count.coming), fmt::to_string(pool.min),
                      fmt::to_string(pool.max), price == 0 ? "-" : PriceText(price), state.Text()});
    JsonObject entry{{"name", pool.meta.name},
                     {"gpu", JsonObject{{"model", pool.gpu.model},
                                        {"product", pool.gpu.product},
                                        {"count", pool.gpu.count},
                                        {"partitioning", cluster::NameOf(pool.gpu.partitioning)}}},
                     {"nodes", count.nodes},
                     {"going", count.going},
                     {"coming", count.coming},
                     {"min", pool.min},
                     {"max", pool.max},
                     {"pricePerHour", static_cast<double>(price) / 1000},
                     {"state", state.name},
                     {"why", state.why},
                     {"failures", pool.failures}};
    if (!state.until.empty()) entry["closedUntil"] = FormatTime(*pool.closed_until);
    out.json.push_back(std::move(entry));
  }
  return out;
}

}  // namespace nos::cmd
