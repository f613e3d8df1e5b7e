#include "scheduling/plugins/gpu_packing/plugin.h"
#include "scheduling/framework.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "scheduling/packing/packer.h"
#include "scheduling/packing/view.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using cluster::Pod;
using packing::TieOrder;
using testing::NodeOf;
using testing::PodOf;
using testing::Snap;

std::string Chosen(const Pod& pod, const cluster::ClusterSnapshot& snapshot) {
  const Decision decision = Framework::Default().Schedule(pod, snapshot);
  return decision.node == nullptr ? "" : decision.node->node->meta.name;
}

// Nodes of several sizes and two GPU products.
std::vector<Node> MixedNodes(int count) {
  std::vector<Node> nodes;
  for (int i = 0; i < count; ++i) {
    const std::string gpus = std::to_string(i % 4 == 3 ? 8 : 1 + i % 4);
    nodes.push_back(NodeOf("node-" + std::to_string(i),
                           {{"cpu", std::to_string(8 + 12 * (i % 3))},
                            {"memory", std::to_string(32 + 64 * (i % 2)) + "Gi"},
                            {"nvidia.com/gpu", gpus}},
                           {{std::string(cluster::kProductLabel), i % 3 == 0 ? "T4" : "A100"}}));
  }
  return nodes;
}

Pod RandomPod(int i, Random& random) {
  const std::string cpu = std::to_string(250 * (1 + random.Below(24))) + "m";
  const std::string memory = std::to_string(256 * (1 + random.Below(32))) + "Mi";
  const std::string gpus = std::to_string(std::array{0, 0, 1, 1, 1, 2, 4}[random.Below(7)]);
  Pod pod = PodOf("pod-" + std::to_string(i),
                  {{"cpu", cpu}, {"memory", memory}, {"nvidia.com/gpu", gpus}});
  if (gpus != "0" && random.Chance(0.3)) {
    pod.node_selector[std::string(cluster::kProductLabel)] = "A100";
  }
  return pod;
}

// The choice of packing::Packer with nodes in the fixed order, after Precompute with all pods so
// far.
std::string PackersChoice(const Pod& pod, const cluster::ClusterSnapshot& snapshot) {
  const packing::View view(snapshot);
  std::vector<const cluster::NodeInfo*> order;
  packing::Demand demand;
  const auto learn = [&](const Pod& p) {
    demand.Precompute(view.KindOf(p, cluster::RequestsOf(p)));
  };
  for (size_t i = 0; i < snapshot.size(); ++i) {
    order.push_back(&snapshot.node(i));
    for (const auto& other : snapshot.node(i).pods) learn(*other);
  }
  learn(pod);
  std::ranges::sort(order, {}, [](const auto* node) { return TieOrder(node->node->meta.name); });
  std::vector<packing::Node> nodes;
  for (const cluster::NodeInfo* info : order) nodes.push_back(view.NodeOf(*info));
  const auto choice = packing::Packer(std::move(nodes), std::move(demand))
                          .Choose(view.KindOf(pod, cluster::RequestsOf(pod)));
  return choice ? order[choice->node]->node->meta.name : "";
}

class SameAsPacker : public ::testing::TestWithParam<int> {};

TEST_P(SameAsPacker, ChoosesLikePackerOnWholeGpus) {
  Random random(static_cast<uint64_t>(GetParam()));
  auto snapshot = Snap(MixedNodes(9), {PodOf("first", {{"nvidia.com/gpu", "1"}}, "node-1")});
  int placed = 0, refused = 0;
  for (int i = 0; i < 60; ++i) {
    const Pod pod = RandomPod(i, random);
    const std::string chosen = Chosen(pod, snapshot);
    ASSERT_EQ(chosen, PackersChoice(pod, snapshot)) << "pod " << i;
    if (chosen.empty()) ++refused;
    if (chosen.empty()) continue;
    ASSERT_TRUE(snapshot.Bind(std::make_shared<const Pod>(pod), chosen).ok());
    ++placed;
  }
  EXPECT_GT(placed, 20);
  EXPECT_GT(refused, 0) << "the cluster never got tight";
}

INSTANTIATE_TEST_SUITE_P(Seeds, SameAsPacker, ::testing::Range(0, 10));

// Running pods with one GPU and four cores, which make up the demand.
std::vector<Pod> GpuPodsOn(const std::string& node, int count) {
  std::vector<Pod> pods;
  for (int i = 0; i < count; ++i) {
    pods.push_back(
        PodOf("gpu-" + std::to_string(i), {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}, node));
  }
  return pods;
}

TEST(GpuPackingTest, PodWithoutGpuStrandsNoGpu) {
  // On "idle" the two cores would leave too few for its last GPU, although it is the emptier node.
  const std::vector<Node> nodes = {NodeOf("idle", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}),
                                   NodeOf("taken", {{"cpu", "18"}, {"nvidia.com/gpu", "4"}})};
  EXPECT_EQ(Chosen(PodOf("p", {{"cpu", "2"}}), Snap(nodes, GpuPodsOn("taken", 4))), "taken");
}

TEST(GpuPackingTest, PodWithoutGpuPrefersFullNodeWithoutGpus) {
  const auto nodes = {NodeOf("gpu", {{"cpu", "64"}, {"nvidia.com/gpu", "1"}}),
                      NodeOf("empty", {{"cpu", "8"}}), NodeOf("full", {{"cpu", "8"}})};
  const auto snapshot = Snap(nodes, {PodOf("q", {{"cpu", "6"}}, "full")});
  const Pod pod = PodOf("p", {{"cpu", "1"}});
  EXPECT_EQ(Chosen(pod, snapshot), "empty");
  auto only_full = Snap(
      {NodeOf("gpu", {{"cpu", "64"}, {"nvidia.com/gpu", "1"}}), NodeOf("full", {{"cpu", "8"}})},
      {PodOf("q", {{"cpu", "7"}}, "full")});
  EXPECT_EQ(Chosen(pod, only_full), "full");
}

TEST(GpuPackingTest, SpreadsPodsOverGpuNodesWithoutGpuDemand) {
  auto snapshot = Snap({NodeOf("a", {{"cpu", "16"}, {"nvidia.com/gpu", "2"}}),
                        NodeOf("b", {{"cpu", "16"}, {"nvidia.com/gpu", "2"}}),
                        NodeOf("c", {{"cpu", "32"}, {"nvidia.com/gpu", "2"}})});
  std::map<std::string, int> counts;
  for (int i = 0; i < 16; ++i) {
    const Pod pod = PodOf("p" + std::to_string(i), {{"cpu", "1"}});
    const std::string node = Chosen(pod, snapshot);
    ASSERT_TRUE(snapshot.Bind(std::make_shared<const Pod>(pod), node).ok());
    ++counts[node];
  }
  EXPECT_EQ(counts, (std::map<std::string, int>{{"a", 4}, {"b", 4}, {"c", 8}}));
}

TEST(GpuPackingTest, TakesWholeGpuFromNodeShortOfCpu) {
  // "poor" has cores for one more GPU pod, "rich" for three.
  const auto snapshot = Snap({NodeOf("poor", {{"cpu", "5"}, {"nvidia.com/gpu", "3"}}),
                              NodeOf("rich", {{"cpu", "12"}, {"nvidia.com/gpu", "3"}}),
                              NodeOf("busy", {{"cpu", "40"}, {"nvidia.com/gpu", "10"}})},
                             GpuPodsOn("busy", 10));
  EXPECT_EQ(Chosen(PodOf("p", {{"cpu", "1"}, {"nvidia.com/gpu", "1"}}), snapshot), "poor");
}

Node Preferred(Node node) {
  node.meta.labels["zone"] = "east";
  return node;
}

TEST(GpuPackingTest, FullPreferenceOutweighsPacking) {
  const auto snapshot = Snap({Preferred(NodeOf("idle", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}})),
                              NodeOf("taken", {{"cpu", "18"}, {"nvidia.com/gpu", "4"}})},
                             GpuPodsOn("taken", 4));
  Pod pod = PodOf("p", {{"cpu", "2"}});
  pod.node_affinity.emplace().preferred = {{1, {{{"zone", "In", {"east"}}}, {}}}};
  EXPECT_EQ(Chosen(pod, snapshot), "idle");
}

Node MigNode(std::string name, const std::string& layout) {
  auto node = NodeOf(std::move(name), {{"cpu", "8"}, {"nvidia.com/mig-1g.5gb", "1"}},
                     {{std::string(cluster::kPartitioningLabel), "mig"},
                      {std::string(cluster::kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                      {std::string(cluster::kCountLabel), "1"}});
  node.meta.annotations["nos.nebuly.com/status-layout-0"] = layout;
  return node;
}

TEST(GpuPackingTest, TakesInstanceFromGpuThatLosesLeast) {
  const Pod pod = PodOf("p", {{"cpu", "1"}, {"nvidia.com/mig-1g.5gb", "1"}});
  const auto snapshot = Snap({MigNode("a", "1g.5gb@0:free"), MigNode("b", "1g.5gb@6:free"),
                              MigNode("c", "1g.5gb@6:free,3g.20gb@0:used")});
  EXPECT_EQ(Chosen(pod, snapshot), "c");
  const auto fresh = Snap({MigNode("a", "1g.5gb@0:free"), MigNode("b", "1g.5gb@6:free")});
  EXPECT_EQ(Chosen(pod, fresh), "b");
}

TEST(GpuPackingTest, BreaksTiesByFullerGpuThenName) {
  const Pod pod = PodOf("p", {{"nvidia.com/mig-1g.5gb", "1"}});
  const auto slots =
      Snap({MigNode("a", "4g.20gb@0:used,2g.10gb@4:used,1g.5gb@6:free"),
            MigNode("z", "1g.5gb@0:free,1g.5gb@1:used,2g.10gb@2:used,3g.20gb@4:used")});
  EXPECT_EQ(Chosen(pod, slots), "z");
  EXPECT_EQ(Chosen(pod, Snap({MigNode("b", "1g.5gb@6:free"), MigNode("a", "1g.5gb@6:free")})), "a");
}

// A node with hybrid GPUs. `used`: shares in use on the first GPU, in GiB.
Node HybridNode(std::string name, const std::string& cpu, int gpus, int used = 0) {
  auto node = NodeOf(std::move(name), {{"cpu", cpu}},
                     {{std::string(cluster::kPartitioningLabel), "hybrid"},
                      {std::string(cluster::kProductLabel), "NVIDIA-L40S"}});
  for (int i = 0; i < gpus; ++i) {
    const std::string number = std::to_string(i);
    node.meta.annotations["nos.nebuly.com/status-model-" + number] = "MPS-40GB";
    node.meta.annotations["nos.nebuly.com/status-other-model-" + number] = "GPU-40GB+GPU";
    node.meta.annotations["nos.nebuly.com/status-layout-" + number] =
        i == 0 && used > 0 ? std::to_string(used) + "gb@0:used" : "";
  }
  return node;
}

std::string ChosenWhereGpusArePartitioned(const Pod& pod,
                                          const cluster::ClusterSnapshot& snapshot) {
  const Framework framework = Framework::Default(PartitionedBy::kScheduler);
  const Decision decision = framework.Schedule(pod, snapshot);
  return decision.node == nullptr ? "" : decision.node->node->meta.name;
}

// All running pods have 35 GiB. A pod with 10 GiB would make an empty GPU useless for them; the 10
// GiB left on a used GPU fit no other pod.
TEST(GpuPackingTest, PlacesShareOnNodeThatLosesLeastWorth) {
  std::vector<Pod> running;
  for (const char* name : {"r1", "r2", "r3", "r4"}) {
    running.push_back(PodOf(name, {{"cpu", "1"}, {"nvidia.com/gpu-35gb", "1"}}, "busy"));
  }
  const auto snapshot = Snap(
      {HybridNode("busy", "64", 4), HybridNode("empty", "64", 1), HybridNode("taken", "64", 1, 30)},
      running);
  EXPECT_EQ(ChosenWhereGpusArePartitioned(
                PodOf("p", {{"cpu", "1"}, {"nvidia.com/gpu-10gb", "1"}}),
                Snap({HybridNode("empty", "64", 1), HybridNode("taken", "64", 1, 30)}, {})),
            "taken");
  const Pod pod = PodOf("p", {{"cpu", "1"}, {"nvidia.com/gpu-10gb", "1"}});
  EXPECT_NE(ChosenWhereGpusArePartitioned(pod, snapshot), "empty");
}

// Most pods have 35 GiB: a small one goes to a GPU where none of those fits any more.
TEST(GpuPackingTest, CreatesShareOnGpuThatLosesLeastWorth) {
  std::vector<Pod> running;
  for (const char* name : {"r1", "r2", "r3", "r4"}) {
    running.push_back(PodOf(name, {{"cpu", "1"}, {"nvidia.com/gpu-35gb", "1"}}, "busy"));
  }
  Node node = HybridNode("n", "64", 3);
  node.meta.annotations["nos.nebuly.com/status-layout-1"] = "30gb@0:used";
  const auto snapshot = Snap({HybridNode("busy", "64", 4), node}, running);
  const Framework framework = Framework::Default(PartitionedBy::kScheduler);
  const CycleState precomputed = framework.Precompute(snapshot, {});
  const auto preferred = [&](const Pod& pod) {
    return framework.PreferredGpu(precomputed, pod, *snapshot.Find("n"));
  };
  EXPECT_EQ(preferred(PodOf("p", {{"nvidia.com/gpu-10gb", "1"}})), 1);
  EXPECT_EQ(preferred(PodOf("p", {{"nvidia.com/gpu-10gb", "1"}, {"nvidia.com/gpu-5gb", "1"}})),
            std::nullopt);
  EXPECT_EQ(preferred(PodOf("p", {{"nvidia.com/gpu", "1"}})), std::nullopt);
  EXPECT_EQ(
      framework.PreferredGpu({}, PodOf("p", {{"nvidia.com/gpu-10gb", "1"}}), *snapshot.Find("n")),
      std::nullopt);
}

// "poor" has too few cores for the most frequent pods, so its GPU has little worth.
TEST(GpuPackingTest, TakesShareFromNodeShortOfCpu) {
  std::vector<Pod> running;
  for (int i = 0; i < 8; ++i) {
    running.push_back(
        PodOf("r" + std::to_string(i), {{"cpu", "4"}, {"nvidia.com/gpu-20gb", "1"}}, "busy"));
  }
  const auto snapshot =
      Snap({HybridNode("busy", "32", 4), HybridNode("poor", "3", 1), HybridNode("rich", "64", 1)},
           running);
  EXPECT_EQ(ChosenWhereGpusArePartitioned(PodOf("p", {{"cpu", "1"}, {"nvidia.com/gpu-20gb", "1"}}),
                                          snapshot),
            "poor");
}

TEST(GpuPackingTest, DemandIncludesAllPendingPods) {
  // The two cores would starve the idle GPU. Only the pending pods show that it is needed.
  const auto snapshot = Snap({NodeOf("idle", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}),
                              NodeOf("other", {{"cpu", "4"}, {"nvidia.com/gpu", "0"}})});
  const std::vector waiting = {
      std::make_shared<const Pod>(PodOf("w", {{"cpu", "4"}, {"nvidia.com/gpu", "1"}}))};
  const GpuPacking plugin;
  const Pod pod = PodOf("p", {{"cpu", "2"}});
  const auto score = [&](Pods pods) {
    CycleState state;
    plugin.Precompute(snapshot, pods, state);
    plugin.PreScore(pod, snapshot, {}, state);
    return plugin.Score(state, pod, *snapshot.Find("idle"));
  };
  EXPECT_LT(score(waiting), score({}) - 10);
}

TEST(GpuPackingTest, NormalizesBestToMaxMinusOnePerStep) {
  std::vector<int64_t> scores = {-5, -3, -4, -500};
  for (int64_t& score : scores) score = GpuPacking().Normalized(score, -500, -3);
  EXPECT_THAT(scores, ::testing::ElementsAre(98, 100, 99, 0));
}

TEST(GpuPackingTest, DoesNotScoreWithoutLearn) {
  const auto snapshot = Snap({NodeOf("a", {{"nvidia.com/gpu", "1"}})});
  const Pod pod = PodOf("p", {{"nvidia.com/gpu", "1"}});
  CycleState state;
  EXPECT_FALSE(GpuPacking().PreScore(pod, snapshot, {}, state));
  EXPECT_EQ(GpuPacking().Score(state, pod, snapshot.node(0)), 0);
  EXPECT_EQ(GpuPacking().Order(state, pod, snapshot.node(0)), 0U);
}

}  // namespace
}  // namespace nos::scheduling
