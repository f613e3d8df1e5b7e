#include "planning/model/packing_cost.h"

#include <gtest/gtest.h>

#include <array>

#include "base/random.h"
#include "planning/planner.h"
#include "planning/testing/clusters.h"
#include "scheduling/framework.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";

cluster::Node& WholeGpus(ClusterBuilder& cluster, const std::string& name, int cpu, int gpus) {
  cluster::Node& node = cluster.PlainNode(name);
  node.allocatable["cpu"] = Quantity::FromValue(cpu);
  node.allocatable["nvidia.com/gpu"] = Quantity::FromValue(gpus);
  return node;
}

void Ask(cluster::Pod& pod, int64_t gpus) {
  if (gpus > 0) pod.containers.at(0).requests["nvidia.com/gpu"] = Quantity::FromValue(gpus);
}

// Pods come one by one; the planner and the scheduler must send each to the same node.
class AsTheScheduler : public ::testing::TestWithParam<int> {};

TEST_P(AsTheScheduler, PlacesPodsWithoutSlicesOnNodeThatLosesLeast) {
  Random random(static_cast<uint64_t>(GetParam()));
  ClusterBuilder cluster;
  for (int i = 0; i < 6; ++i) {
    WholeGpus(cluster, "whole-" + std::to_string(i), 8 + 12 * (i % 3), 1 + i);
  }
  cluster.Node("mig", kA100, {"1g.5gb@0:used", ""}).allocatable["cpu"] = Quantity::FromValue(16);
  auto snapshot = cluster.Snapshot();
  const scheduling::Framework framework = scheduling::Framework::Default();
  int placed = 0;
  for (int i = 0; i < 40; ++i) {
    ClusterBuilder arrivals;
    const std::string cpu = std::to_string(250 * (1 + random.Below(24))) + "m";
    Ask(arrivals.Pod("pod-" + std::to_string(i), {}, 0, cpu),
        std::array{0, 0, 1, 1, 2}[random.Below(5)]);
    const auto pods = arrivals.Pending();
    const Plan plan = MakePlan(snapshot, pods, framework, {});
    const auto decision = framework.Schedule(*pods[0], snapshot);
    const std::string node = decision.node == nullptr ? "" : decision.node->node->meta.name;
    ASSERT_EQ(plan.pods[0].node, node) << "pod " << i;
    if (node.empty()) continue;
    ASSERT_TRUE(snapshot.Bind(pods[0], node).ok());
    ++placed;
  }
  EXPECT_GT(placed, 15);
}

INSTANTIATE_TEST_SUITE_P(Seeds, AsTheScheduler, ::testing::Range(0, 10));

TEST(PackingCostTest, ImportantPodsWithoutSlicesLeaveGpusTheirCpu) {
  ClusterBuilder cluster;
  cluster.Node("a", kA100, {""}).allocatable["cpu"] = Quantity::FromValue(8);
  WholeGpus(cluster, "b", 8, 1);
  Ask(cluster.Running("taken", "b", {}, "1"), 1);
  for (int i = 0; i < 6; ++i) cluster.Pod("web-" + std::to_string(i), {}, 100, "1");
  cluster.Pod("train", {"7g.40gb"}, 0, "7");
  EXPECT_EQ(cluster.MakePlan().placed, 7);
}

TEST(PackingCostTest, PodOfSeveralGpusLeavesSingleGpusTogether) {
  ClusterBuilder cluster;
  WholeGpus(cluster, "a", 64, 2);
  WholeGpus(cluster, "b", 64, 2);
  Ask(cluster.Pod("two", {}, 10, "1"), 2);
  for (const char* name : {"one", "other"}) Ask(cluster.Pod(name, {}, 0, "1"), 1);
  const Plan plan = cluster.MakePlan();
  EXPECT_EQ(plan.placed, 3);
  EXPECT_NE(plan.pods[0].node, plan.pods[1].node);
  EXPECT_EQ(plan.pods[1].node, plan.pods[2].node);
}

}  // namespace
}  // namespace nos::planning
