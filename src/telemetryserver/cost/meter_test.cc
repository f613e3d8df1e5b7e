#include "telemetryserver/cost/meter.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/clock.h"
#include "base/random.h"
#include "telemetryserver/cost/money.h"

namespace nos::telemetryserver {
namespace {

int64_t Below(Random& random, int64_t limit) {
  return static_cast<int64_t>(random.Below(static_cast<uint64_t>(limit)));
}

constexpr telemetry::Millis kBegin = 489'933 * kHour;
constexpr Micros kPrice = 2'345'678;
const std::string kPriced = "NVIDIA A100-SXM4-40GB", kOther = "Odd 9000";

Event PodEvent(telemetry::Millis at, const std::string& name, const std::string& quota,
               const std::string& capacity = "") {
  return {0,
          at,
          "pod",
          "uid-" + name,
          {{"kind", "pod"},
           {"at", at},
           {"uid", "uid-" + name},
           {"namespace", "team"},
           {"name", name},
           {"state", "running"},
           {"quota", quota},
           {"capacity", capacity},
           {"job", {{"kind", "Job"}, {"name", "train"}}},
           {"created", kBegin}}};
}

Event LayoutEvent(telemetry::Millis at, const telemetry::Layout& layout) {
  return {0, at, "layout", layout.node, telemetry::LayoutRecord(at, layout)};
}

Event NodeEvent(telemetry::Millis at, const std::string& name, bool ready = true) {
  return {0, at, "node", name, {{"kind", "node"}, {"at", at}, {"node", name}, {"ready", ready}}};
}

Event Removal(telemetry::Millis at, const std::string& what, const std::string& key) {
  return {0,
          at,
          "removed",
          what + "/" + key,
          {{"kind", "removed"}, {"at", at}, {"what", what}, {"id", key}}};
}

telemetry::Instance SliceOf(const std::string& uuid, int64_t size,
                            std::vector<telemetry::Holder> holders = {}) {
  telemetry::Instance slice;
  slice.uuid = uuid;
  slice.profile = "1g.5gb";
  slice.size = size;
  slice.holders = std::move(holders);
  return slice;
}

telemetry::Gpu GpuWith(const std::string& product, std::vector<telemetry::Instance> instances) {
  telemetry::Gpu gpu;
  gpu.uuid = "GPU-1";
  gpu.product = product;
  gpu.memory = 40'000;
  gpu.slots = 8;
  gpu.mig = true;
  gpu.instances = std::move(instances);
  return gpu;
}

class MeterTest : public ::testing::Test {
 protected:
  Ledger Bill(const std::vector<Event>& events, telemetry::Millis to = kBegin + kHour) {
    Meter meter(state_, prices_, gpu::Catalogue::Builtin(), measured_,
                {kBegin, kBegin + 100 * kHour, 30'000});
    for (const Event& event : events) meter.Apply(event);
    return std::move(meter).Until(to);
  }
  // Everything reports in the hour.
  void Alive(const std::string& gpu) { measured_.AddReport("gpu/" + gpu, kBegin, kHour); }
  static std::map<std::string, Micros> ByCategory(const Ledger& ledger) {
    std::map<std::string, Micros> sums;
    for (const auto& [key, amounts] : ledger.rows()) {
      sums[std::string(NameOf(key.category))] += amounts.cost;
    }
    return sums;
  }

  State state_;
  PriceList prices_{"EUR", "", {{.per_gpu_hour = 8'000'000, .model = "A100-40GB"}}};
  Measured measured_;
};

TEST_F(MeterTest, FollowsRepartitioningAndMovesOfPods) {
  Alive("GPU-1");
  const telemetry::Holder holder{"team", "train", "c"};
  const Ledger ledger =
      Bill({PodEvent(kBegin, "train", "research"),
            LayoutEvent(kBegin, {"n", "mig", {GpuWith(kPriced, {SliceOf("a", 4, {holder})})}}),
            // Half an hour later it moves to a slice of half the size.
            LayoutEvent(kBegin + kHour / 2,
                        {"n", "mig", {GpuWith(kPriced, {SliceOf("b", 2, {holder})})}})});
  EXPECT_EQ(ledger.total().cost, 8'000'000);
  Micros of_pod = 0;
  for (const auto& [key, sums] : ledger.rows()) {
    if (key.pod.empty()) continue;
    of_pod += sums.cost;
    EXPECT_EQ(key.quota, "research");
    EXPECT_EQ(key.job, "Job/train");
    EXPECT_EQ(key.model, "A100-40GB");
    EXPECT_EQ(key.category, Category::kUnknown);
  }
  // Each of the twelve windows rounds by less than a millionth.
  EXPECT_NEAR(static_cast<double>(of_pod), 3'000'000, 12);
}

TEST_F(MeterTest, BorrowedTimeEndsWithTheLabel) {
  Alive("GPU-1");
  const Ledger ledger = Bill(
      {PodEvent(kBegin, "train", "q", "over-quota"),
       LayoutEvent(kBegin,
                   {"n", "mig", {GpuWith(kPriced, {SliceOf("a", 8, {{"team", "train", "c"}})})}}),
       PodEvent(kBegin + kHour / 4, "train", "q", "in-quota")});
  std::map<bool, Micros> borrowed;
  for (const auto& [key, sums] : ledger.rows()) borrowed[key.borrowed] += sums.cost;
  EXPECT_EQ(borrowed[true], 2'000'000);
  EXPECT_EQ(borrowed[false], 6'000'000);
}

TEST_F(MeterTest, PodIsKnownBeforeItsRecordAndAfterItsRemoval) {
  Alive("GPU-1");
  const Ledger ledger = Bill(
      {LayoutEvent(kBegin,
                   {"n", "mig", {GpuWith(kPriced, {SliceOf("a", 8, {{"team", "train", "c"}})})}}),
       PodEvent(kBegin + kMinute, "train", "research"),
       Removal(kBegin + kHour / 2, "pod", "uid-train")});
  for (const auto& [key, sums] : ledger.rows()) EXPECT_EQ(key.quota, "research");
  EXPECT_EQ(ledger.total().cost, 8'000'000);
}

TEST_F(MeterTest, BillEndsWithTheNode) {
  Alive("GPU-1");
  const Ledger ledger = Bill({NodeEvent(kBegin, "n"),
                              LayoutEvent(kBegin + kHour / 4, {"n", "mig", {GpuWith(kPriced, {})}}),
                              Removal(kBegin + kHour / 2, "node", "n")});
  EXPECT_EQ(ledger.total().cost, 2'000'000);
  EXPECT_EQ(ByCategory(ledger), (std::map<std::string, Micros>{{"unpartitioned", 2'000'000}}));
}

TEST_F(MeterTest, SilenceAndUnreadyNodesHaveTheirCategories) {
  for (telemetry::Millis at = kBegin; at < kBegin + kHour / 2; at += kCostWindow) {
    measured_.AddReport("gpu/GPU-1", at, 0);
  }
  const Ledger ledger = Bill({LayoutEvent(kBegin, {"n", "mig", {GpuWith(kPriced, {})}}),
                              NodeEvent(kBegin + kHour / 4, "n", false)});
  EXPECT_EQ(ByCategory(ledger), (std::map<std::string, Micros>{{"unpartitioned", 2'000'000},
                                                               {"stranded", 2'000'000},
                                                               {"not_reported", 4'000'000}}));
}

TEST_F(MeterTest, GpuWithoutPriceIsCountedAsUnpriced) {
  Alive("GPU-1");
  const Ledger ledger = Bill({LayoutEvent(kBegin, {"n", "mig", {GpuWith(kOther, {})}})});
  EXPECT_EQ(ledger.total(), (CostSums{0, kMicrosPerUnit, kMicrosPerUnit}));
}

// Random histories: the parts add up to the price of each GPU while it existed.
class RandomHistory {
 public:
  // `prices`: of the hours.
  RandomHistory(uint64_t seed, std::vector<Micros> prices)
      : random_(seed), prices_(std::move(prices)) {}

  std::vector<Event> Make() {
    std::vector<Event> events;
    for (telemetry::Millis at = kBegin + Below(random_, 600'000); at < end();
         at += Below(random_, 240'000)) {
      events.push_back(Next(at));
    }
    for (const auto& [name, gpus] : nodes_) End(name, end());
    return events;
  }
  telemetry::Millis end() const {
    return kBegin + static_cast<telemetry::Millis>(prices_.size()) * kHour;
  }
  Micros bill() const { return bill_; }
  Micros gpu_time() const { return gpu_time_; }

 private:
  Event Next(telemetry::Millis at) {
    const std::string node = fmt::format("n{}", Below(random_, 4) + 4 * generation_);
    switch (Below(random_, 8)) {
      case 0:
        return PodEvent(at, fmt::format("p{}", Below(random_, 6)),
                        fmt::format("q{}", Below(random_, 3)),
                        Below(random_, 2) == 0 ? "over-quota" : "in-quota");
      case 1:
        return Removal(at, "pod", fmt::format("uid-p{}", Below(random_, 6)));
      case 2:
        return NodeEvent(at, node, Below(random_, 2) == 0);
      case 3:
        if (nodes_.contains(node)) {
          End(node, at);
          nodes_.erase(node);
          ++generation_;  // the name does not come back
          return Removal(at, "node", node);
        }
        [[fallthrough]];
      default:
        return Layout(at, node);
    }
  }
  Event Layout(telemetry::Millis at, const std::string& node) {
    End(node, at);
    telemetry::Layout layout{node, "mig", {}};
    int64_t priced = 0;
    const int64_t gpus = Below(random_, 4);
    for (int64_t g = 0; g < gpus; ++g) {
      const bool known = Below(random_, 3) > 0;
      priced += known ? 1 : 0;
      telemetry::Gpu gpu = GpuWith(known ? kPriced : kOther, {});
      gpu.uuid = fmt::format("GPU-{}-{}", node, g);
      gpu.index = g;
      for (int64_t i = 0, left = 8; left > 0 && Below(random_, 4) > 0; ++i) {
        const int64_t size = 1 + Below(random_, left);
        gpu.instances.push_back(SliceOf(fmt::format("{}-{}", gpu.uuid, i), size));
        gpu.instances.back().id = i;
        gpu.instances.back().start = 8 - left;
        left -= size;
        for (int64_t h = Below(random_, 3); h > 0; --h) {
          gpu.instances.back().holders.push_back(
              {"team", fmt::format("p{}", Below(random_, 6)), "c"});
        }
      }
      layout.gpus.push_back(std::move(gpu));
    }
    nodes_[node] = {at, priced, gpus};
    return LayoutEvent(at, layout);
  }
  void End(const std::string& node, telemetry::Millis at) {
    const auto found = nodes_.find(node);
    if (found == nodes_.end()) return;
    const auto& [since, priced, gpus] = found->second;
    for (size_t i = 0; i < prices_.size(); ++i) {
      const telemetry::Millis hour = kBegin + static_cast<telemetry::Millis>(i) * kHour;
      const telemetry::Millis from = std::max(since, hour), to = std::min(at, hour + kHour);
      if (from < to) bill_ += priced * CostOf(prices_[i], from, to);
    }
    gpu_time_ += gpus * CostOf(kMicrosPerUnit, since, at);
  }

  Random random_;
  const std::vector<Micros> prices_;
  int64_t generation_ = 0;
  Micros bill_ = 0, gpu_time_ = 0;
  std::map<std::string, std::tuple<telemetry::Millis, int64_t, int64_t>>
      nodes_;  // since, priced, all
};

// The price changes after an hour and after two, as a list of dated rules has it.
TEST(MeterPropertyTest, PartsAddUpToTheBill) {
  const std::vector<Micros> of_hours = {kPrice, 7'000'001, 999};
  PriceList prices{"EUR", "", {}};
  for (size_t i = of_hours.size(); i-- > 0;) {
    PriceRule rule{.per_gpu_hour = of_hours[i], .model = "A100-40GB"};
    const telemetry::Millis since = kBegin + static_cast<telemetry::Millis>(i) * kHour;
    if (i > 0) rule.valid_from = FormatTime(Time(std::chrono::milliseconds(since)));
    prices.rules.push_back(std::move(rule));
  }
  ASSERT_TRUE(CheckPrices(prices).ok());
  prices = WithTimes(std::move(prices));
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    RandomHistory history(seed, of_hours);
    const std::vector<Event> events = history.Make();
    Measured measured;
    Random random(seed);
    for (int i = 0; i < 120; ++i) {
      measured.Add(fmt::format("instance/GPU-n{}-{}-{}", Below(random, 8), Below(random, 4),
                               Below(random, 4)),
                   {kBegin + Below(random, 3 * 3'600'000),
                    static_cast<double>(Below(random, 1001)) / 1000, 0, 0, 1},
                   0);
    }
    State state;
    Ledger ledger;
    auto next = events.begin();
    for (telemetry::Millis hour = kBegin; hour < history.end(); hour += kHour) {
      Meter meter(state, prices, gpu::Catalogue::Builtin(), measured,
                  {hour, kBegin + 9 * kHour, 30'000});
      for (; next != events.end() && next->at < hour + kHour; ++next) meter.Apply(*next);
      ledger.Add(std::move(meter).Until(hour + kHour));
    }
    ASSERT_EQ(ledger.total().cost, history.bill()) << seed;
    ASSERT_EQ(ledger.total().gpu_time, history.gpu_time()) << seed;
    CostSums sum;
    for (const auto& [key, sums] : ledger.rows()) {
      ASSERT_GE(sums.cost, 0);
      sum.cost += sums.cost;
      sum.gpu_time += sums.gpu_time;
      sum.unpriced += sums.unpriced;
    }
    ASSERT_EQ(sum, ledger.total()) << seed;
  }
}

}  // namespace
}  // namespace nos::telemetryserver
