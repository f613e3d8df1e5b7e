#include "cmd/query/pool_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cluster/node_template.h"
#include "planning/pool_nodes.h"

namespace nos::cmd {
namespace {

// "16:04 UTC"; with the date if it is a day or more ahead.
std::string UntilText(Time until, Time now) {
  const std::string text = FormatTime(until);
  return until - now < std::chrono::hours(24) ? text.substr(11, 5) + " UTC" : text;
}

struct State {
  std::string name;   // end of the state kClosed
  std::string until;  // of closed
  std::string why;
  std::string Text() const {
    return name + (until.empty() ? "" : " until " + until) + (why.empty() ? "" : ": " + why);
  }
};

State StateOf(const cluster::NodePool& pool, Time now) {
  controllers::PoolStanding standing = controllers::StandingOf(pool, now);
  const bool closed = standing.state == "closed" && pool.closed_until.has_value();
  return {std::string(standing.state), closed ? UntilText(*pool.closed_until, now) : "",
          std::move(standing.why)};
}

// Also reports problems of a pool that no autoscaler has processed yet.
State StateOf(const cluster::NodePool& pool, const gpu::Catalogue& catalogue, Time now) {
  State state = StateOf(pool, now);
  if (state.name != "unknown") return state;
  const auto made = planning::NewNodeOf(pool, 0, catalogue);
  return made.ok() ? state : State{"invalid", "", made.status().message()};
}

std::string GpuText(const cluster::PoolGpus& gpu) {
  if (gpu.count == 0) return "-";
  const std::string& name = gpu.model.empty() ? gpu.product : gpu.model;
  return fmt::format("{} x {}", gpu.count, name.empty() ? "GPU" : name);
}

std::string ModeText(const cluster::PoolGpus& gpu) {
  if (gpu.count == 0) return "-";
  if (gpu.partitioning == cluster::SharingMode::kNone) return "whole";
  return std::string(cluster::NameOf(gpu.partitioning));
}

// Sums over pools. Nodes that go are paid for until they are gone.
struct Sums {
  int nodes = 0, going = 0, coming = 0, unpriced = 0;
  double milli_price = 0;  // per hour

  void Add(const PoolCount& count) {
    const int64_t price = cluster::MilliPriceOf(*count.pool);
    const int paid = count.nodes + count.going;
    nodes += count.nodes;
    going += count.going;
    coming += count.coming;
    milli_price += static_cast<double>(price) * paid;
    if (price == 0) unpriced += paid;
  }
  // "2 pools: 5 nodes, 1 going, 1 coming; 8.6 per hour"
  std::string Text(size_t pools) const {
    std::string text = fmt::format("{} {}: {} {}", pools, pools == 1 ? "pool" : "pools", nodes,
                                   nodes == 1 ? "node" : "nodes");
    if (going > 0) text += fmt::format(", {} going", going);
    text += fmt::format(", {} coming", coming);
    if (milli_price == 0) return text;
    constexpr double kMaxPrice = 9e18;  // of int64_t
    text += fmt::format("; {} per hour",
                        PriceText(static_cast<int64_t>(std::min(milli_price, kMaxPrice))));
    if (unpriced > 0) {
      text +=
          fmt::format(", beside {} {} without a price", unpriced, unpriced == 1 ? "node" : "nodes");
    }
    return text;
  }
};

}  // namespace

std::vector<PoolCount> CountPools(const cluster::ClusterSnapshot& snapshot,
                                  const std::vector<SharedPool>& pools) {
  std::vector<std::shared_ptr<const cluster::Node>> nodes;
  nodes.reserve(snapshot.size());
  for (size_t n = 0; n < snapshot.size(); ++n) nodes.push_back(snapshot.node(n).node);
  return controllers::CountPools(nodes, pools);
}

planning::NodePoolState NowOf(const PoolCount& count, Time now) {
  const State state = StateOf(*count.pool, now);
  const bool open =
      state.name == "ready" || state.name == "unknown" || state.name == controllers::kUndescribed;
  return {count.pool, count.nodes, count.coming, open ? "" : state.Text()};
}

std::string PriceText(int64_t milli_price) {
  std::string text = fmt::format("{}.{:03}", milli_price / 1000, milli_price % 1000);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

Printout ReportPools(const LiveCluster& live, Time now) {
  Printout out({{"NAME"},
                {"GPU"},
                {"MODE"},
                {"NODES"},
                {"COMING"},
                {"MIN"},
                {"MAX"},
                {"PRICE/HOUR"},
                {"STATE"}});
  const std::vector<PoolCount> counts = CountPools(live.snapshot, live.pools);
  Sums sums;
  for (const PoolCount& count : counts) {
    const cluster::NodePool& pool = *count.pool;
    if (!live.selection.Takes(pool.meta)) continue;
    const State state = StateOf(pool, live.snapshot.catalogue(), now);
    const int64_t price = cluster::MilliPriceOf(pool);
    sums.Add(count);
    // "-" would mean that the pool has no GPU.
    const bool known = cluster::IsDescribed(pool) || pool.gpu_specified;
    const bool learned = pool.learns && cluster::IsDescribed(pool);
    const std::string nodes = count.going == 0
                                  ? fmt::to_string(count.nodes)
                                  : fmt::format("{} ({} going)", count.nodes, count.going);
    JsonObject entry{{"name", pool.meta.name},
                     {"gpu", JsonObject{{"model", pool.gpu.model},
                                        {"product", pool.gpu.product},
                                        {"count", pool.gpu.count},
                                        {"partitioning", cluster::NameOf(pool.gpu.partitioning)}}},
                     {"learned", learned},
                     {"learnt", learned},  // the old name
                     {"nodes", count.nodes},
                     {"going", count.going},
                     {"coming", count.coming},
                     {"min", pool.min},
                     {"max", pool.max},
                     {"pricePerHour", static_cast<double>(price) / 1000},
                     {"state", state.name},
                     {"why", state.why},
                     {"failures", pool.failures}};
    if (!state.until.empty() && pool.closed_until)
      entry["closedUntil"] = FormatTime(*pool.closed_until);
    out.Add({"nodepool/" + pool.meta.name,
             {{pool.meta.name, known ? GpuText(pool.gpu) : "?", known ? ModeText(pool.gpu) : "?",
               nodes, fmt::to_string(count.coming), fmt::to_string(pool.min),
               fmt::to_string(pool.max), price == 0 ? "-" : PriceText(price), state.Text()}},
             std::move(entry),
             CreatedOf(pool.meta)});
  }
  out.total = sums.Text(out.objects().size());
  return out;
}

}  // namespace nos::cmd
