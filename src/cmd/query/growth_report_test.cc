#include "cmd/query/growth_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/catalogue.h"

namespace nos::cmd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::shared_ptr<cluster::Pod> Pod(const std::string& ns, const std::string& name) {
  auto pod = std::make_shared<cluster::Pod>();
  pod->meta.ns = ns;
  pod->meta.name = name;
  pod->phase = "Pending";
  pod->containers.emplace_back();
  return pod;
}

planning::NodePoolState Pool(const std::string& name, const std::string& price, int nodes,
                             int coming) {
  auto pool = std::make_shared<cluster::NodePool>();
  pool->meta.name = name;
  pool->price = *Quantity::Parse(price);
  return {pool, nodes, coming, ""};
}

// Pods ml/a, ml/b and ml/c.
Unplaced Three() { return {{}, {Pod("ml", "a"), Pod("ml", "b"), Pod("ml", "c")}, {}}; }

planning::GrowthPlan Growth() {
  planning::GrowthPlan plan;
  plan.pools = {{2, ""}, {0, "NodePool cpu: spec.gpu.model: unknown"}};
  plan.nodes = {{0, "a100/new-0", false, {0}}, {0, "a100/new-1", true, {1}}};
  plan.left_out = {{2, {"NoPoolFits", "it is too big", 0}, 0}};
  plan.served = 2;
  plan.milli_price = 24'500;
  return plan;
}

planning::MovePlan Moves() {
  planning::MovePlan plan;
  plan.pod_moves = {
      {0,
       "gpu-1",
       {},
       {{Pod("x", "one"), "gpu-1", "gpu-2", {}}, {Pod("x", "two"), "gpu-1", "gpu-3", {}}}}};
  plan.others = {{1, {"CapacityAvailable", "fits on node gpu-1", 0}},
                 {2, {"TooManyMoves", "4 pods of node gpu-1 would have to move", 0}}};
  return plan;
}

TEST(GrowthReportTest, ListsNewNodesWithTheirPods) {
  EXPECT_EQ(
      GrowthToText(Growth(), {Pool("a100", "12.25", 3, 1), Pool("cpu", "1", 0, 0)}, Three(), 100),
      "\n"
      "New nodes: 2 of 3 pods without a place would run, for 24.5 an hour; not proven to be "
      "the cheapest\n"
      "POOL  NODES  COMING  NEW  PRICE/H  PODS\n"
      "a100  3      1       2    24.5     ml/a, ml/b\n"
      "\n"
      "STILL WAITING  NEAREST  WHY\n"
      "ml/c           a100     it is too big\n"
      "\n"
      "ignored pools:\n"
      "  NodePool cpu: spec.gpu.model: unknown\n");
}

TEST(GrowthReportTest, ListsPodsPlacedOnExistingNodes) {
  planning::GrowthPlan plan = Growth();
  plan.nodes.push_back({-1, "gpu-7", false, {2}});
  plan.left_out.clear();
  const std::vector<planning::NodePoolState> pools = {Pool("a100", "12.25", 3, 1),
                                                      Pool("cpu", "1", 0, 0)};
  EXPECT_EQ(GrowthToText(plan, pools, Three(), 100),
            "\n"
            "New nodes: 2 of 3 pods without a place would run, for 24.5 an hour; not proven to be "
            "the cheapest\n"
            "POOL     NODES  COMING  NEW  PRICE/H  PODS\n"
            "a100     3      1       2    24.5     ml/a, ml/b\n"
            "(there)  1      -       -    -        ml/c\n"
            "\n"
            "ignored pools:\n"
            "  NodePool cpu: spec.gpu.model: unknown\n");
  const Json json = GrowthToJson(plan, pools, Three());
  EXPECT_EQ(json.at("nodes").at(2).at("name"), "gpu-7");
  EXPECT_EQ(json.at("nodes").at(2).at("pool"), "");
}

TEST(GrowthReportTest, JsonContainsTheSame) {
  const Json json =
      GrowthToJson(Growth(), {Pool("a100", "12.25", 3, 1), Pool("cpu", "1", 0, 0)}, Three());
  EXPECT_EQ(json.at("pools").at(0).at("name"), "a100");
  EXPECT_EQ(json.at("pools").at(0).at("nodes"), 3);
  EXPECT_EQ(json.at("pools").at(0).at("coming"), 1);
  EXPECT_EQ(json.at("pools").at(0).at("new"), 2);
  EXPECT_EQ(json.at("pools").at(1).at("problem"), "NodePool cpu: spec.gpu.model: unknown");
  EXPECT_EQ(json.at("nodes").at(1).at("coming"), true);
  EXPECT_EQ(json.at("nodes").at(1).at("pods").at(0).at("name"), "b");
  EXPECT_EQ(json.at("served"), 2);
  EXPECT_EQ(json.at("pricePerHour"), 24.5);
  EXPECT_EQ(json.at("proven"), false);
  EXPECT_EQ(json.at("leftOut").at(0).at("code"), "NoPoolFits");
  EXPECT_EQ(json.at("leftOut").at(0).at("nearestPool"), "a100");
}

TEST(GrowthReportTest, WithoutPoolsGivesRemedy) {
  planning::GrowthPlan plan;
  plan.left_out = {{0, {"NoPools", "there are no node pools", 0}, -1}};
  EXPECT_EQ(
      GrowthToText(plan, {}, Three(), 100),
      "\n"
      "New nodes: no node pools found; create a NodePool for each kind of node that can\n"
      "be added (docs/autoscaling.md), and dump them with: kubectl get nodes,pods,nospools -A "
      "-o yaml\n");
  EXPECT_EQ(GrowthToText({}, {}, {}, 100), "\nNew nodes: none, every pod has a place\n");
  EXPECT_EQ(GrowthToJson(plan, {}, Three()).at("leftOut").at(0).at("nearestPool"), "");
}

TEST(GrowthReportTest, DescribesMovesInOneSentence) {
  EXPECT_EQ(MovesToText(Moves(), Three(), 100),
            "\n"
            "Moves:\n"
            "  ml/a could run on gpu-1 if x/one moved to gpu-2 and x/two to gpu-3\n"
            "\n"
            "NOT MOVED FOR  WHY\n"
            "ml/b           fits on node gpu-1\n"
            "ml/c           4 pods of node gpu-1 would have to move\n");
  const Json json = MovesToJson(Moves(), Three());
  const Json& pod_moves = json.at("reliefs").at(0);
  EXPECT_EQ(pod_moves.at("name"), "a");
  EXPECT_EQ(pod_moves.at("node"), "gpu-1");
  EXPECT_EQ(pod_moves.at("moves").at(1).at("namespace"), "x");
  EXPECT_EQ(pod_moves.at("moves").at(1).at("to"), "gpu-3");
  EXPECT_EQ(json.at("others").at(1).at("code"), "TooManyMoves");
}

TEST(GrowthReportTest, EscapesControlCharactersInNames) {
  planning::MovePlan plan = Moves();
  plan.pod_moves[0].node = "\x1b[2J";
  EXPECT_EQ(MovesToText(plan, Three(), 100).find('\x1b'), std::string::npos);
}

TEST(GrowthReportTest, PlacedPodsAreBoundAndNotUnplaced) {
  auto node = std::make_shared<cluster::Node>();
  node->meta.name = "n";
  planning::Plan plan;
  for (const char* name : {"a", "b", "c", "d"}) {
    plan.pods.push_back({Pod("ml", name), false, "", {}, {}, "", ""});
  }
  plan.pods[0].placed = true;
  plan.pods[0].node = "n";
  const std::vector<planning::Gang> gangs = {{"lacks one", 2, 0, {0, 2}, ""},
                                             {"whole", 1, 1, {3}, ""}};
  // A quota refuses a single pod, and the gang of which b is a member.
  const std::vector<planning::PodOutcome> refused = {
      {Pod("ml", "single"), false, "", {}, {{"Quota", "allows at most 1", 0}}, "", ""},
      {plan.pods[1].pod, false, "", {}, {{"Quota", "allows at most 1", 0}}, "", ""}};
  const Unplaced unplaced =
      UnplacedOf({plan, gangs, refused},
                 cluster::ClusterSnapshot::Build({node}, {}, gpu::Catalogue::Builtin()));
  ASSERT_EQ(unplaced.refused.size(), 1U);
  EXPECT_EQ(unplaced.refused[0].pod->meta.name, "single");
  EXPECT_EQ(unplaced.snapshot.Find("n")->pods.size(), 1U);
  ASSERT_EQ(unplaced.pods.size(), 3U);
  EXPECT_EQ(unplaced.pods[1]->meta.name, "c");
  ASSERT_EQ(unplaced.gangs.size(), 1U);
  EXPECT_EQ(unplaced.gangs[0].Lacking(), 1);
  EXPECT_THAT(unplaced.gangs[0].members, ElementsAre(1));
}

TEST(GrowthReportTest, PodsRefusedByQuotasHaveNoPlace) {
  Unplaced unplaced = Three();
  unplaced.refused = {{Pod("ml", "d"), false, "", {}, {{"Quota", "allows at most 1", 0}}, "", ""}};
  const Json growth =
      GrowthToJson(Growth(), {Pool("a100", "1", 0, 0), Pool("cpu", "1", 0, 0)}, unplaced);
  EXPECT_EQ(growth.at("leftOut").as_array().back().at("name").as_string(), "d");
  EXPECT_EQ(growth.at("leftOut").as_array().back().at("code").as_string(), "Quota");
  const Json moves = MovesToJson(Moves(), unplaced);
  EXPECT_EQ(moves.at("others").as_array().back().at("code").as_string(), "Quota");
  EXPECT_THAT(MovesToText(Moves(), unplaced, 100), HasSubstr("ml/d"));
  EXPECT_EQ(
      GrowthToText(Growth(), {Pool("a100", "1", 0, 0), Pool("cpu", "1", 0, 0)}, unplaced, 100),
      "\n"
      "New nodes: 2 of 4 pods without a place would run, for 24.5 an hour; not proven to be "
      "the cheapest\n"
      "POOL  NODES  COMING  NEW  PRICE/H  PODS\n"
      "a100  0      0       2    2        ml/a, ml/b\n"
      "\n"
      "STILL WAITING  NEAREST  WHY\n"
      "ml/c           a100     it is too big\n"
      "ml/d           -        allows at most 1\n"
      "\n"
      "ignored pools:\n"
      "  NodePool cpu: spec.gpu.model: unknown\n");
  // The quota refuses the only pending pod.
  unplaced.pods.clear();
  EXPECT_EQ(MovesToText({}, unplaced, 100),
            "\nMoves: none, the pod without a place is refused by its quota\n");
  EXPECT_EQ(GrowthToText({}, {}, unplaced, 100),
            "\nNew nodes: none, the pod without a place is refused by its quota\n");
  EXPECT_EQ(StillUnplaced(unplaced, {}).refused.size(), 1U);
}

TEST(GrowthReportTest, PodsServedByAnotherDriverNeedNoNewNodes) {
  Unplaced unplaced = Three();
  const std::string key = unplaced.pods[0]->Key();
  EXPECT_EQ(Without({}, unplaced).pods.size(), unplaced.pods.size());
  const Unplaced left = Without({key}, unplaced);
  EXPECT_EQ(left.pods.size() + 1, unplaced.pods.size());
  for (const auto& pod : left.pods) EXPECT_NE(pod->Key(), key);
}

TEST(GrowthReportTest, PodsServedByMovesNeedNoNewNodes) {
  Unplaced unplaced = Three();
  unplaced.gangs = {{"helped", 1, 0, {0}, ""}};
  const Unplaced left = StillUnplaced(unplaced, Moves());
  ASSERT_EQ(left.pods.size(), 1U);
  EXPECT_EQ(left.pods[0]->meta.name, "c");
  EXPECT_THAT(left.gangs, IsEmpty());
}

}  // namespace
}  // namespace nos::cmd
