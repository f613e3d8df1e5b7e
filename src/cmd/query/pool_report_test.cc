#include "cmd/query/pool_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "controllers/autoscaler.h"
#include "controllers/relocations.h"

namespace nos::cmd {
namespace {

using ::testing::HasSubstr;

constexpr Time kNow{std::chrono::hours(1'000)};  // 1970-02-11T16:00:00Z

class PoolReportTest : public testing::Test {
 protected:
  cluster::NodePool& Pool(const std::string& name, int wanted) {
    auto pool = std::make_shared<cluster::NodePool>();
    pool->meta.name = name;
    pool->labels = pool->node_selector = {{"pool", name}};
    pool->max = 20;
    pool->wanted = wanted;
    pools_.push_back(pool);
    return *pool;
  }
  cluster::NodePool& Spot() {
    cluster::NodePool& pool = Pool("a100-spot", 4);
    pool.gpu.model = "A100-80GB";
    pool.gpu.count = 8;
    pool.gpu.partitioning = cluster::SharingMode::kMig;
    pool.price = *Quantity::Parse("12.25");
    pool.conditions = {{controllers::kPoolReady, "True", "Ready", ""}};
    return pool;
  }
  cluster::Node& Node(const std::string& name, const std::string& pool) {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = name;
    node->meta.labels = {{"pool", pool}};
    nodes_.push_back(node);
    return *node;
  }
  cluster::ClusterSnapshot Snapshot() const {
    return cluster::ClusterSnapshot::Build(nodes_, {}, gpu::Catalogue::Builtin());
  }
  Printout Report() const {
    LiveCluster live;
    live.snapshot = Snapshot();
    live.pools = pools_;
    return ReportPools(live, kNow);
  }

  std::vector<std::shared_ptr<const cluster::Node>> nodes_;
  std::vector<SharedPool> pools_;
};

TEST_F(PoolReportTest, CountsExistingLeavingAndExpectedNodes) {
  Spot();
  Node("a", "a100-spot");
  Node("b", "a100-spot");
  Node("c", "a100-spot").meta.annotations[std::string(controllers::kRemoval)] = "{}";
  Node("d", "none");
  const Printout out = Report();
  EXPECT_EQ(out.Table().ToString(100),
            "NAME       GPU            MODE  NODES        COMING  MIN  MAX  PRICE/HOUR  STATE\n"
            "a100-spot  8 x A100-80GB  mig   2 (1 going)  2       0    20   12.25       ready\n");
  ASSERT_EQ(out.ToJson().size(), 1U);
  EXPECT_EQ(out.ToJson()[0].at("nodes"), 2);
  EXPECT_EQ(out.ToJson()[0].at("going"), 1);
  EXPECT_EQ(out.ToJson()[0].at("coming"), 2);
  EXPECT_EQ(out.ToJson()[0].at("pricePerHour"), 12.25);
  EXPECT_EQ(out.ToJson()[0].at("gpu").at("count"), 8);
}

TEST_F(PoolReportTest, TotalsHavePriceOfNodesThatExist) {
  Spot();
  Node("a", "a100-spot");
  Node("b", "a100-spot").meta.annotations[std::string(controllers::kRemoval)] = "{}";
  EXPECT_EQ(Report().total, "1 pool: 1 node, 1 going, 3 coming; 24.5 per hour");
  Pool("free", 0);
  Node("c", "free");
  EXPECT_EQ(Report().total,
            "2 pools: 2 nodes, 1 going, 3 coming; 24.5 per hour, beside 1 node without a price");
  pools_.erase(pools_.begin());
  EXPECT_EQ(Report().total, "1 pool: 1 node, 0 coming");
}

TEST_F(PoolReportTest, ShowsWhyPoolDoesNotGrow) {
  Pool("new", 0);
  cluster::NodePool& late = Pool("late", 0);
  late.closed_until = kNow + std::chrono::minutes(4);
  late.conditions = {{controllers::kPoolReady, "False", "NotDelivered", "2 nodes did not come"}};
  cluster::NodePool& wrong = Pool("wrong", 0);
  wrong.closed_until = kNow + std::chrono::minutes(4);
  wrong.conditions = {{controllers::kPoolReady, "False", "Invalid", "spec.gpu.model: unknown"}};
  cluster::NodePool& mute = Pool("mute", 0);
  mute.closed_until = kNow - std::chrono::minutes(4);
  mute.conditions = {{controllers::kPoolReady, "False", "ScaleFailed", "timeout"}};
  const Printout out = Report();
  EXPECT_EQ(out.Table().ToString(),
            R"(NAME   GPU  MODE  NODES  COMING  MIN  MAX  PRICE/HOUR  STATE
new    -    -     0      0       0    20   -           unknown: no autoscaler has looked at it
late   -    -     0      0       0    20   -           closed until 16:04 UTC: 2 nodes did not come
wrong  -    -     0      0       0    20   -           invalid: spec.gpu.model: unknown
mute   -    -     0      0       0    20   -           failing: timeout
)");
  EXPECT_EQ(out.ToJson()[1].at("state"), "closed");
  EXPECT_EQ(out.ToJson()[1].at("closedUntil"), "1970-02-11T16:04:00Z");
  EXPECT_EQ(out.ToJson()[1].at("why"), "2 nodes did not come");
  EXPECT_FALSE(out.ToJson()[2].as_object().contains("closedUntil"));
}

TEST_F(PoolReportTest, ShowsRecordedNodeShapeOrUnknown) {
  cluster::NodePool& pool = Spot();
  pool.gpu = {};
  pool.learns = true;
  pool.gpu_specified = false;
  pool.conditions = {{controllers::kPoolReady, "False", controllers::kNoTemplate, "no node"}};
  EXPECT_EQ(
      Report().Table().ToString(),
      "NAME       GPU  MODE  NODES  COMING  MIN  MAX  PRICE/HOUR  STATE\n"
      "a100-spot  ?    ?     0      4       0    20   12.25       no template: has no node yet to "
      "learn from: give spec.cpu and spec.memory (and spec.gpu), or one node\n");
  EXPECT_EQ(Report().ToJson()[0].at("state"), "no template");
  for (const char* key : {"learned", "learnt"})
    EXPECT_EQ(Report().ToJson()[0].at(key), false) << key;
  EXPECT_EQ(NowOf(CountPools(Snapshot(), pools_).at(0), kNow).closed, "")
      << "its minimum is expected";
  pool.resources = {{"cpu", Quantity::FromValue(8)}, {"memory", Quantity::FromValue(8)}};
  pool.gpu.product = "NVIDIA-H100-80GB-HBM3";
  pool.gpu.count = 8;
  EXPECT_EQ(
      Report().Table().ToString(),
      "NAME       GPU                        MODE   NODES  COMING  MIN  MAX  PRICE/HOUR  STATE\n"
      "a100-spot  8 x NVIDIA-H100-80GB-HBM3  whole  0      4       0    20   12.25       ready\n")
      << "the autoscaler has not recorded its node yet";
  for (const char* key : {"learned", "learnt"})
    EXPECT_EQ(Report().ToJson()[0].at(key), true) << key;
}

TEST_F(PoolReportTest, EscapesControlCharactersAndFitsColumns) {
  Spot().conditions = {
      {controllers::kPoolReady, "False", "Invalid", "\x1b[2J" + std::string(200, 'x')}};
  Node("a", "a100-spot").meta.deleted = kNow;
  const std::string text = Report().Table().ToString(100);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("invalid: ?[2Jxx"));
  for (const std::string_view line : Split(text, '\n')) EXPECT_LE(DisplayWidth(line), 100U);
}

TEST_F(PoolReportTest, GrowthInputFollowsPoolStatus) {
  cluster::NodePool& pool = Spot();
  Node("a", "a100-spot");
  const auto now = [&] { return NowOf(CountPools(Snapshot(), pools_).at(0), kNow); };
  EXPECT_EQ(now().nodes, 1);
  EXPECT_EQ(now().coming, 3);
  EXPECT_EQ(now().closed, "");
  pool.conditions.clear();
  EXPECT_EQ(now().closed, "") << "its status does not close it";
  pool.closed_until = kNow + std::chrono::hours(48);
  EXPECT_EQ(now().closed, "closed until 1970-02-13T16:00:00Z");
  pool.wanted = -5;
  EXPECT_EQ(now().coming, 0);
}

TEST_F(PoolReportTest, ReportsInvalidPoolWithoutAutoscaler) {
  cluster::NodePool& fine = Spot();
  fine.conditions.clear();
  cluster::NodePool& wrong = Pool("wrong", 0);
  wrong.gpu = fine.gpu;
  wrong.gpu.model = "X100";
  const Printout out = Report();
  EXPECT_EQ(out.ToJson()[0].at("state"), "unknown");
  EXPECT_EQ(out.ToJson()[1].at("state"), "invalid");
  EXPECT_EQ(out.ToJson()[1].at("why"),
            "NodePool wrong: spec.gpu.model: 'X100' is not in the catalogue: add it to the "
            "catalogue file (docs/catalogue.md)");
}

TEST(PriceTextTest, OmitsTrailingZeros) {
  EXPECT_EQ(PriceText(0), "0");
  EXPECT_EQ(PriceText(12'250), "12.25");
  EXPECT_EQ(PriceText(1), "0.001");
  EXPECT_EQ(PriceText(20'000), "20");
}

}  // namespace
}  // namespace nos::cmd
