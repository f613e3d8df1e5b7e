#include "cmd/query/status_report.h"

#include <gtest/gtest.h>

#include "base/table.h"
#include "base/text.h"
#include "controllers/verdicts.h"
#include "gpu/catalogue.h"

namespace nos::cmd {
namespace {

constexpr Time kNow{std::chrono::hours(1'000)};

class StatusReportTest : public testing::Test {
 protected:
  cluster::Node& AddNode(const std::string& name, const std::string& layout) {
    auto node = std::make_shared<cluster::Node>();
    node->meta.name = name;
    node->meta.labels = {{"nos.nebuly.com/gpu-partitioning", "mig"},
                         {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                         {"nvidia.com/gpu.count", "1"}};
    if (!layout.empty()) node->meta.annotations["nos.nebuly.com/status-layout-0"] = layout;
    nodes_.push_back(node);
    return *node;
  }
  cluster::Pod& AddPod(const std::string& name, const std::string& node, Duration age) {
    auto pod = std::make_shared<cluster::Pod>();
    pod->meta.ns = "team-a";
    pod->meta.name = name;
    pod->meta.created = kNow - age;
    pod->node_name = node;
    pod->phase = node.empty() ? "Pending" : "Running";
    pod->containers.emplace_back().requests["nvidia.com/mig-1g.5gb"] = Quantity::FromValue(1);
    pods_.push_back(pod);
    return *pod;
  }
  ClusterStatus Status() {
    LiveCluster live = MakeLiveCluster(nodes_, pods_, gpu::Catalogue::Builtin());
    live.quotas = quotas_;
    return StatusOf(live, kNow);
  }

  std::vector<std::shared_ptr<const cluster::Node>> nodes_;
  std::vector<std::shared_ptr<const cluster::Pod>> pods_;
  std::vector<quota::SharedQuota> quotas_;
};

TEST_F(StatusReportTest, GroupsPendingPodsByNamespaceRequestAndReason) {
  AddNode("n", "1g.5gb@0:used");
  AddPod("run", "n", std::chrono::hours(1));
  for (const int minutes : {1, 3, 2}) {
    AddPod("wait-" + std::to_string(minutes), "", std::chrono::minutes(minutes))
        .conditions.push_back({.type = std::string(controllers::kPartitionedCondition),
                               .status = "False",
                               .reason = "NoRoom",
                               .message = "no room on 1 node"});
  }
  AddPod("gated", "", std::chrono::minutes(5)).scheduling_gates = {"kueue.x-k8s.io/admission"};
  const ClusterStatus status = Status();
  EXPECT_EQ(status.running, 1U);
  EXPECT_EQ(status.pending, 4U);
  ASSERT_EQ(status.waiting.size(), 2U);
  EXPECT_EQ(status.waiting[0].reason, "SchedulingGated");
  EXPECT_EQ(status.waiting[1].pods, 3U);
  EXPECT_EQ(status.waiting[1].oldest, "wait-3");
  EXPECT_EQ(status.waiting[1].longest, std::chrono::minutes(3));
  EXPECT_EQ(ToText(status, 100, 10), R"(GPUs     1 on 1 node: 0 without pods, 12 % of the slots used
         no GPU is being repartitioned
Pods     1 running, 4 pending (longest 5m)

PENDING, longest first
PODS  NAMESPACE  REQUEST       LONGEST  OLDEST  WHY
1     team-a     1xmig-1g.5gb  5m       gated   waiting for scheduling gates: [kueue.x-k8s.io/admis…
3     team-a     1xmig-1g.5gb  3m       wait-3  no room on 1 node

NEEDS ATTENTION
nothing
)");
  EXPECT_EQ(Find(ToJson(status), "pods", "pending")->to_number<int>(), 4);
}

TEST_F(StatusReportTest, NamesNodesAndPodsThatNeedAttention) {
  AddNode("cordoned", "1g.5gb@0:free").unschedulable = true;
  AddNode("silent", "");
  cluster::Node& lost = AddNode("lost", "1g.5gb@0:free");
  lost.conditions.push_back(
      {.type = "Ready", .status = "Unknown", .reason = "NodeStatusUnknown", .message = ""});
  AddPod("old", "", std::chrono::minutes(11));
  const std::vector<std::string> expected = {
      "1 pod pending for more than 10m", "node cordoned is cordoned",
      "node lost is not ready: NodeStatusUnknown", "no agent reports 1 GPU of node silent"};
  std::vector<std::string> attention = Status().attention;
  EXPECT_EQ(attention, expected);
}

TEST_F(StatusReportTest, CountsQuotasThatBorrowAndThoseOwedTheirMin) {
  AddNode("n", "1g.5gb@0:used,1g.5gb@1:used");
  for (const auto& [ns, min] : {std::pair("team-a", "5"), {"team-b", "10"}}) {
    auto quota = std::make_shared<cluster::ElasticQuota>();
    quota->meta.ns = ns;
    quota->meta.name = "q";
    quota->namespaces = {ns};
    quota->min["nos.nebuly.com/gpu-memory"] = *Quantity::Parse(min);
    quotas_.push_back(quota);
  }
  AddPod("a-1", "n", std::chrono::minutes(1));
  AddPod("a-2", "n", std::chrono::minutes(1));
  AddPod("b-1", "", std::chrono::minutes(1)).meta.ns = "team-b";
  const ClusterStatus status = Status();
  EXPECT_EQ(status.quotas, 2U);
  EXPECT_EQ(status.borrowing, 1U);
  EXPECT_EQ(status.below_min, 1U);
}

TEST_F(StatusReportTest, SaysHowManyGroupsAreNotShown) {
  for (int i = 0; i < 4; ++i) {
    AddPod("p" + std::to_string(i), "", std::chrono::minutes(i)).meta.ns = "ns" + std::to_string(i);
  }
  const std::string text = ToText(Status(), 100, 3);
  EXPECT_NE(text.find("\nand 1 group more; nos get pods lists all\n"), std::string::npos) << text;
  for (const auto line : Split(text, '\n')) EXPECT_LE(DisplayWidth(line), 100U) << line;
}

TEST_F(StatusReportTest, ShowsDecisionsOfLastHour) {
  const int64_t now = 1'763'760'000'000;
  const Json answer = {
      {"stories", JsonArray{{{"at", now - 120'000}, {"sentence", "evicted team-b/x for team-a/y"}},
                            {{"at", "wrong"}, {"sentence", "left out"}},
                            {{"at", now + 5}, {"sentence", "by a server whose clock is ahead"}}}}};
  ClusterStatus status = Status();
  EXPECT_EQ(ToText(status, 100, 3).find("LAST HOUR"), std::string::npos);
  EXPECT_EQ(Find(ToJson(status), "stories"), nullptr);
  status.stories = RecentStoriesOf(answer, now);
  EXPECT_EQ(Find(ToJson(status), "stories")->get_array().size(), 2U);
  const std::string text = ToText(status, 100, 3);
  EXPECT_NE(text.find(R"(
LAST HOUR, newest first; nos get stories lists all
AGO  DECISION
2m   evicted team-b/x for team-a/y
0s   by a server whose clock is ahead

NEEDS ATTENTION
)"),
            std::string::npos)
      << text;
}

// An answer of GET cost.
Json CostAnswer(bool configured, const Json& cost, const char* unpriced) {
  return {{"configured", configured},
          {"currency", configured ? "EUR" : ""},
          {"from", 1'763'756'400'000},
          {"to", 1'763'760'000'000},
          {"total",
           {{"cost", cost},
            {"gpu_hours", "4.500000"},
            {"unpriced_gpu_hours", unpriced},
            {"borrowed", "0.000000"},
            {"categories",
             {{"used", "5.004000"},
              {"idle", "3.004000"},
              {"unknown", "0.001000"},
              {"free", "1000.000000"},
              {"unpartitioned", "0.000000"},
              {"fragmented", "1.500000"},
              {"stranded", "0.000000"},
              {"not_reported", "0.250000"}}}}}};
}

TEST_F(StatusReportTest, SaysWhatTheLastHourCost) {
  AddNode("n", "1g.5gb@0:used");
  AddPod("run", "n", std::chrono::hours(1));
  ClusterStatus status = Status();
  status.cost = HourCostOf(CostAnswer(true, "1009.759000", "0.000000"));
  EXPECT_EQ(ToText(status, 100, 10), R"(GPUs     1 on 1 node: 0 without pods, 12 % of the slots used
         no GPU is being repartitioned
Pods     1 running, 0 pending
Cost     1,009.76 EUR in the last hour: 5.00 used, 3.01 idle, 1,000.00 free, 1.50 fragmented,
         0.25 not reported

NEEDS ATTENTION
nothing
)");
  const Json json = ToJson(status);
  EXPECT_EQ(FindString(json, "cost", "total"), "1009.759000");
  EXPECT_EQ(FindString(json, "cost", "currency"), "EUR");
  EXPECT_EQ(FindString(json, "cost", "categories", "not_reported"), "0.250000");
  EXPECT_EQ(Find(json, "cost", "to")->to_number<int64_t>(), 1'763'760'000'000);
}

TEST_F(StatusReportTest, SaysWhichHoursHaveNoPrice) {
  ClusterStatus status = Status();
  status.cost = HourCostOf(CostAnswer(true, "1009.759000", "1.500000"));
  const std::string some = ToText(status, kUncut, 10);
  EXPECT_NE(some.find(" 0.25 not reported; 1.50 of 4.50 GPU hours have no price\n"),
            std::string::npos)
      << some;
  status.cost = HourCostOf(CostAnswer(true, nullptr, "4.500000"));
  const std::string all = ToText(status, kUncut, 10);
  EXPECT_NE(all.find("Cost     unknown: no GPU of the last hour has a price\n"), std::string::npos)
      << all;
  EXPECT_TRUE(Find(ToJson(status), "cost", "total")->is_null());
}

TEST_F(StatusReportTest, SaysNothingOfCostsWithoutPrices) {
  ClusterStatus status = Status();
  const std::string text = ToText(status, 100, 10);
  status.cost = HourCostOf(CostAnswer(false, nullptr, "4.500000"));
  EXPECT_EQ(ToText(status, 100, 10), text);
  EXPECT_EQ(Find(ToJson(status), "cost"), nullptr);
  for (const Json& other : {Json(), Json("text"), Json(JsonObject{{"configured", true}})}) {
    EXPECT_FALSE(HourCostOf(other)) << WriteJson(other);
  }
  Json empty = CostAnswer(true, "0.000000", "0.000000");
  MakeObject(empty, "total")["gpu_hours"] = "0.000000";
  EXPECT_FALSE(HourCostOf(empty));
}

}  // namespace
}  // namespace nos::cmd
