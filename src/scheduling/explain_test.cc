#include "scheduling/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::NodeOf;
using testing::PodOf;

Node GpuNode(const std::string& name, const std::string& layout, const std::string& cpu = "8") {
  Node node = NodeOf(name, {{"cpu", cpu}},
                     {{"nos.nebuly.com/gpu-partitioning", "mig"},
                      {"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB"},
                      {"nvidia.com/gpu.count", "1"}});
  node.meta.annotations["nos.nebuly.com/status-layout-0"] = layout;
  return node;
}

Pod Running(const std::string& name, const std::string& node, testing::Amounts asks,
            int32_t priority = 0) {
  Pod pod = PodOf(name, asks, node);
  pod.phase = "Running";
  pod.priority = priority;
  return pod;
}

class ExplainTest : public ::testing::Test {
 protected:
  Explanation Why(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod,
                  const Framework& framework, const std::string& gang = "") {
    const auto snapshot = testing::Snap(nodes, pods);
    return Explain({framework, cutting_, snapshot, pod, PreemptionOptions(), gang});
  }
  Explanation Why(const std::vector<Node>& nodes, const std::vector<Pod>& pods, const Pod& pod) {
    return Why(nodes, pods, pod, cutting_);
  }

  const Framework cutting_ = Framework::Default(GpusCut::kHere);
  const Framework waiting_ = Framework::Default(GpusCut::kElsewhere);
};

TEST_F(ExplainTest, TheNearestNodeLacksLeast) {
  const auto why = Why({NodeOf("a", {{"cpu", "2"}}), NodeOf("b", {{"cpu", "8"}})},
                       {Running("x", "b", {{"cpu", "6"}})}, PodOf("p", {{"cpu", "4"}}));
  ASSERT_TRUE(why.nearest);
  EXPECT_EQ(why.nearest->node, "b") << "a can never hold it";
  ASSERT_EQ(why.nearest->lacks.size(), 1u);
  EXPECT_EQ(why.nearest->lacks[0].free, 2000);
  EXPECT_FALSE(why.nearest->lacks[0].never);
  EXPECT_EQ(why.diagnosis.ToString(), "0/2 nodes are available: 2 Insufficient cpu.");
  EXPECT_EQ(why.remedy, "wait for the end of x/x on node b, or give it a priority above 0");
}

TEST_F(ExplainTest, WhatNoNodeHoldsNeedsABiggerOne) {
  const auto why = Why({NodeOf("a", {{"cpu", "2"}}), NodeOf("b", {{"cpu", "3"}})}, {},
                       PodOf("p", {{"cpu", "4"}}));
  EXPECT_EQ(why.remedy, "add a node with at least 4 cpu: b, the nearest, has 3 cpu in all");
}

TEST_F(ExplainTest, MoreInstancesThanTheGpusHoldNeedABiggerNode) {
  const auto why = Why({GpuNode("g", "")}, {}, PodOf("p", {{"nvidia.com/mig-1g.5gb", "1000"}}));
  EXPECT_EQ(why.remedy,
            "add a node with at least 1000 nvidia.com/mig-1g.5gb: g, the nearest, has 7 "
            "nvidia.com/mig-1g.5gb in all");
}

TEST_F(ExplainTest, ObjectionsAreLifted) {
  Node cordoned = NodeOf("a", {{"cpu", "8"}});
  cordoned.unschedulable = true;
  EXPECT_EQ(Why({cordoned}, {}, PodOf("p", {{"cpu", "4"}})).remedy, "uncordon node a: it has room");
  Node tainted = NodeOf("b", {{"cpu", "8"}});
  tainted.taints.push_back({"key", "value", "NoSchedule"});
  EXPECT_EQ(Why({tainted}, {}, PodOf("p", {{"cpu", "4"}})).remedy,
            "tolerate or remove the taints of node b: it has room");
  Pod picky = PodOf("p", {{"cpu", "4"}});
  picky.node_selector["zone"] = "z";
  EXPECT_EQ(Why({NodeOf("c", {{"cpu", "8"}})}, {}, picky).remedy,
            "let the pod on node c (node(s) didn't match Pod's node affinity/selector): it has "
            "room");
  tainted.unschedulable = true;
  const auto both = Why({tainted, NodeOf("a", {{"cpu", "1"}})}, {}, PodOf("p", {{"cpu", "4"}}));
  EXPECT_EQ(both.nearest->objections.size(), 2u) << "all of them, not the first alone";
  EXPECT_EQ(both.remedy,
            "uncordon node b, and tolerate or remove the taints of node b: it has "
            "room");
}

TEST_F(ExplainTest, APriorityThatMakesRoomNeedsNoRemedy) {
  Pod pod = PodOf("p", {{"cpu", "4"}});
  pod.priority = 5;
  const std::vector<Pod> pods = {Running("low", "a", {{"cpu", "4"}}, 1)};
  const auto why = Why({NodeOf("a", {{"cpu", "4"}})}, pods, pod);
  ASSERT_TRUE(why.preemption);
  EXPECT_THAT(why.preemption->pods, ElementsAre("x/low"));
  EXPECT_EQ(why.remedy, "none needed: its priority makes room on node a, where x/low is evicted");
  pod.preemption_policy = "Never";
  const auto never = Why({NodeOf("a", {{"cpu", "4"}})}, pods, pod);
  EXPECT_FALSE(never.preemption);
  EXPECT_EQ(never.no_preemption, "not eligible due to preemptionPolicy=Never.");
}

TEST_F(ExplainTest, SaysWhatIsCutWhere) {
  const std::vector<Node> nodes = {GpuNode("g", "3g.20gb@0:used,3g.20gb@4:free"), NodeOf("n")};
  const std::vector<Pod> pods = {Running("u", "g", {{"nvidia.com/mig-3g.20gb", "1"}})};
  const Pod pod = PodOf("p", {{"nvidia.com/mig-2g.10gb", "1"}});
  const auto here = Why(nodes, pods, pod);
  ASSERT_TRUE(here.place);
  EXPECT_EQ(here.place->node, "g");
  ASSERT_EQ(here.place->cut.made.size(), 1u);
  EXPECT_EQ(here.place->cut.made[0].name, "2g.10gb@4");
  EXPECT_THAT(here.place->cut.destroyed, ElementsAre(Explanation::Instance{0, "3g.20gb@4"}));
  EXPECT_EQ(here.remedy, "none needed: nos scheduler has 2g.10gb@4 of GPU 0 cut on node g for it");

  const auto elsewhere = Why(nodes, pods, pod, waiting_);
  EXPECT_FALSE(elsewhere.place);
  ASSERT_TRUE(elsewhere.nearest);
  EXPECT_EQ(elsewhere.nearest->node, "g") << "n can never have MIG instances";
  EXPECT_TRUE(elsewhere.nearest->cut);
  EXPECT_EQ(elsewhere.remedy,
            "have 2g.10gb@4 of GPU 0 cut on node g: the partitioner does so, or nos scheduler if "
            "the pod names it");
}

TEST_F(ExplainTest, NamesThePodsOnAFullGpu) {
  const std::vector<Node> nodes = {GpuNode("g", "7g.40gb@0:used")};
  const std::vector<Pod> pods = {Running("u", "g", {{"nvidia.com/mig-7g.40gb", "1"}}, 3)};
  for (const Framework* framework : {&cutting_, &waiting_}) {
    const auto why = Why(nodes, pods, PodOf("p", {{"nvidia.com/mig-1g.5gb", "1"}}), *framework);
    ASSERT_TRUE(why.in_the_way);
    EXPECT_THAT(why.in_the_way->pods, ElementsAre("x/u"));
    EXPECT_EQ(why.remedy, framework == &cutting_
                              ? "wait for the end of x/u on node g, or give it a priority above 3"
                              : "wait for the end of x/u on node g")
        << "kube-scheduler evicts nobody for what is to be cut";
  }
}

TEST_F(ExplainTest, GatesAndGangsComeFirst) {
  Pod gated = PodOf("p", {{"cpu", "1"}});
  gated.scheduling_gates = {"example.com/quota"};
  const auto why = Why({NodeOf("a", {{"cpu", "4"}})}, {}, gated);
  EXPECT_NE(why.gate, "");
  EXPECT_THAT(why.remedy, HasSubstr("lift what it waits for"));
  const auto gang =
      Why({NodeOf("a", {{"cpu", "4"}})}, {}, PodOf("p"), cutting_, "1 of 3 are there");
  EXPECT_EQ(gang.remedy, "complete its group: 1 of 3 are there");
}

TEST_F(ExplainTest, AClusterWithoutNodes) {
  EXPECT_EQ(Why({}, {}, PodOf("p")).remedy, "add a node: the cluster has none");
}

TEST_F(ExplainTest, TextFitsTheWidth) {
  std::vector<Pod> pods;
  for (int i = 0; i < 30; ++i) {
    pods.push_back(Running("a-pod-with-a-long-name-" + std::to_string(i), "a", {{"cpu", "100m"}}));
  }
  Pod pod = PodOf("p", {{"cpu", "3"}});
  pod.node_selector["zone"] = "z";
  Node wrong = NodeOf("b", {{"cpu", "9"}});
  wrong.unschedulable = true;
  Node right = NodeOf("a", {{"cpu", "3"}}, {{"zone", "z"}});
  const auto why = Why({right, wrong}, pods, pod);
  const std::string text = ToText(why, 100);
  for (const auto line : Split(text, '\n')) EXPECT_LE(line.size(), 100u) << line;
  EXPECT_THAT(text, HasSubstr("x/p waits: 0/2 nodes are available\n"));
  EXPECT_THAT(text, HasSubstr("  lacks       cpu: asks for 3, 0 of 3 free\n"));
  EXPECT_THAT(text, HasSubstr("18 more"));
  EXPECT_THAT(text, HasSubstr("remedy"));
  const Json json = ToJson(why);
  EXPECT_EQ(json.at("nearest").at("lacks").at(0).at("asked"), Json("3"));
  EXPECT_EQ(json.at("inTheWay").at("pods").as_array().size(), 30u);
  EXPECT_EQ(json.at("remedy"), Json(why.remedy));
}

}  // namespace
}  // namespace nos::scheduling
