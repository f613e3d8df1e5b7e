#include "scheduling/packing/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling::packing {
namespace {

using scheduling::testing::NodeOf;
using scheduling::testing::PodOf;
using scheduling::testing::Snap;
using ::testing::ElementsAre;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";

cluster::Node MigNode(std::string name, const std::string& layout) {
  auto node = NodeOf(std::move(name), {{"cpu", "8"}},
                     {{std::string(cluster::kPartitioningLabel), "mig"},
                      {std::string(cluster::kProductLabel), kA100},
                      {std::string(cluster::kCountLabel), "1"}});
  node.meta.annotations["nos.nebuly.com/status-layout-0"] = layout;
  return node;
}

cluster::Pod On(cluster::Pod pod, const std::string& product) {
  pod.node_selector[std::string(cluster::kProductLabel)] = product;
  return pod;
}

TEST(ViewTest, NodeHasResourcesLeftByItsPods) {
  const auto snapshot =
      Snap({NodeOf("a", {{"cpu", "8"}, {"memory", "4Gi"}, {"nvidia.com/gpu", "3"}, {"pods", "9"}})},
           {PodOf("p", {{"cpu", "500m"}, {"memory", "1Gi"}, {"nvidia.com/gpu", "2"}}, "a")});
  const Node node = View(snapshot).NodeOf(snapshot.node(0));
  EXPECT_EQ(node.cpu_milli, 7500);
  EXPECT_EQ(node.memory_mib, 3072);
  EXPECT_EQ(node.pods, 8);
  EXPECT_THAT(node.gpu_milli, ElementsAre(1000, 0, 0));
}

TEST(ViewTest, MigGpuIsFilledByUsedSlots) {
  const auto snapshot = Snap({MigNode("a", "3g.20gb@4:used,1g.5gb@0:free")});
  EXPECT_THAT(View(snapshot).NodeOf(snapshot.node(0)).gpu_milli, ElementsAre(500));
}

TEST(ViewTest, ClampsAbsurdAmounts) {
  const auto snapshot =
      Snap({NodeOf("a", {{"nvidia.com/gpu", "9E"}}), NodeOf("b", {{"nvidia.com/gpu", "0"}})},
           {PodOf("p", {{"cpu", "9E"}, {"nvidia.com/gpu", "9E"}}, "b")});
  const View view(snapshot);
  EXPECT_EQ(view.NodeOf(snapshot.node(0)).gpu_milli.size(), 256U);
  EXPECT_TRUE(view.NodeOf(snapshot.node(1)).gpu_milli.empty());
  const auto greedy = PodOf("q", {{"nvidia.com/gpu", "9E"}, {"nvidia.com/mig-1g.5gb", "9E"}});
  EXPECT_EQ(view.KindOf(greedy, cluster::RequestsOf(greedy)).gpus, 256);
  EXPECT_EQ(view.DemandOf(snapshot, {}).total(), 1);
}

TEST(ViewTest, DerivesModelsFromSelectorAndAffinity) {
  const auto labelled = [](const char* name, const char* product) {
    return NodeOf(name, {{"nvidia.com/gpu", "1"}},
                  {{std::string(cluster::kProductLabel), product}});
  };
  const auto snapshot = Snap({labelled("a", "T4"), labelled("b", "A100"), labelled("c", "H100")});
  const View view(snapshot);
  const auto models = [&](const cluster::Pod& pod) {
    return view.KindOf(pod, cluster::RequestsOf(pod)).models;
  };
  auto pod = PodOf("p", {{"nvidia.com/gpu", "1"}});
  EXPECT_EQ(models(pod), kAnyModel);
  EXPECT_EQ(models(On(pod, "H100")), uint64_t{1} << view.NodeOf(*snapshot.Find("c")).model);
  pod.node_selector["zone"] = "east";
  EXPECT_EQ(models(pod), kAnyModel);
  pod.node_affinity.emplace().required = {
      {{{std::string(cluster::kProductLabel), "NotIn", {"T4"}}, {"zone", "Exists", {}}}, {}}};
  EXPECT_EQ(models(pod), 0b011U) << "numbered by name: A100, H100, T4";
}

TEST(ViewTest, DemandCountsRunningAndPendingPods) {
  auto daemon = PodOf("d", {{"cpu", "1"}}, "a");
  daemon.meta.owners.push_back({"apps/v1", "DaemonSet", "d", "1", true});
  const auto snapshot =
      Snap({MigNode("a", "3g.20gb@4:free,3g.20gb@0:free")},
           {PodOf("p", {{"cpu", "4"}, {"nvidia.com/mig-3g.20gb", "2"}}, "a"), daemon});
  const std::vector waiting = {
      std::make_shared<const cluster::Pod>(PodOf("q", {{"nvidia.com/gpu", "2"}})),
      std::make_shared<const cluster::Pod>(PodOf("r", {{"nvidia.com/mig-9g.99gb", "1"}}))};
  const Demand demand = View(snapshot).DemandOf(snapshot, waiting);
  const PodKind half{.cpu_milli = 2000, .gpus = 1, .milli = 500, .models = 1};
  const PodKind two{.gpus = 2, .milli = 1000};
  EXPECT_THAT(demand.counts(), ElementsAre(std::pair(two, 1), std::pair(half, 2)));
}

// The current partitioning of the node's GPUs does not matter.
TEST(ViewTest, CountsSharesOfHybridNodesAsFractions) {
  auto node = NodeOf("h", {{"cpu", "8"}},
                     {{std::string(cluster::kPartitioningLabel), "hybrid"},
                      {std::string(cluster::kProductLabel), "NVIDIA-L40S"}});
  node.meta.annotations = {{"nos.nebuly.com/status-model-0", "GPU-40GB+GPU"},
                           {"nos.nebuly.com/status-other-model-0", "MPS-40GB"},
                           {"nos.nebuly.com/status-layout-0", ""}};
  const auto snapshot = Snap({node});
  const auto pod = PodOf("p", {{"cpu", "2"}, {"nvidia.com/gpu-10gb", "1"}});
  const std::vector waiting = {std::make_shared<const cluster::Pod>(pod)};
  const View view(snapshot);
  const PodKind quarter{.cpu_milli = 2000, .gpus = 1, .milli = 250, .models = 1};
  EXPECT_THAT(view.DemandOf(snapshot, waiting).counts(), ElementsAre(std::pair(quarter, 1)));
  const PodKind kind = view.KindOf(pod, cluster::RequestsOf(pod));
  const auto share = cluster::InternResource("nvidia.com/gpu-10gb");
  EXPECT_EQ(View::KindWithShare(kind, *snapshot.Find("h"), share)->milli, 250);
  EXPECT_FALSE(View::KindWithShare(kind, *snapshot.Find("h"),
                                   cluster::InternResource("nvidia.com/gpu-41gb")));
}

TEST(ViewTest, TieOrderIsFixed) {
  EXPECT_EQ(TieOrder("node-1"), TieOrder("node-1"));
  EXPECT_EQ(TieOrder(""), 3280043009U);
  EXPECT_NE(TieOrder("node-1"), TieOrder("node-2"));
}

}  // namespace
}  // namespace nos::scheduling::packing
