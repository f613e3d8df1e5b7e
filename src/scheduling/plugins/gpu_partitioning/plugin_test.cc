#include "scheduling/plugins/gpu_partitioning/plugin.h"

#include <gtest/gtest.h>

#include "cluster/annotations.h"
#include "scheduling/testing/build.h"
#include "scheduling/testing/hint.h"

namespace nos::scheduling {
namespace {

using cluster::Node;
using testing::NodeOf;
using testing::PodOf;
using Kind = ClusterEvent::Kind;

// A node with two A100-40GB GPUs with these layouts.
Node GpuNode(const std::string& name, const std::string& first, const std::string& second) {
  Node node = NodeOf(name, {{"cpu", "96"}},
                     {{std::string(cluster::kPartitioningLabel), "mig"},
                      {std::string(cluster::kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                      {std::string(cluster::kCountLabel), "2"}});
  node.meta.annotations = {{"nos.nebuly.com/status-layout-0", first},
                           {"nos.nebuly.com/status-layout-1", second}};
  return node;
}

std::string Ask(const cluster::Pod& pod, const Node& node) {
  const GpuPartitioning plugin;
  const auto snapshot = testing::Snap({node});
  CycleState state;
  (void)plugin.PreFilter(pod, snapshot, state);
  return plugin.Filter(state, pod, snapshot.node(0)).message;
}

TEST(GpuPartitioningTest, FitsSlicesThatCanBeCreatedTogether) {
  const auto pod = PodOf("p", {{"nvidia.com/mig-3g.20gb", "2"}, {"nvidia.com/mig-1g.5gb", "8"}});
  EXPECT_EQ(Ask(pod, GpuNode("n", "", "")), "");
  EXPECT_EQ(Ask(pod, GpuNode("n", "", "1g.5gb@0:used")), "Insufficient nvidia.com/mig-1g.5gb");
}

TEST(GpuPartitioningTest, OnlyRemovedGpuPodsWakePod) {
  const GpuPartitioning plugin;
  const auto pod = PodOf("p", {{"nvidia.com/mig-3g.20gb", "1"}});
  const auto helps = [&](testing::Amounts held) {
    return plugin.MayHelp({Kind::kPodLeft, nullptr, nullptr,
                           std::make_shared<const cluster::Pod>(PodOf("q", held, "n")), nullptr},
                          pod);
  };
  EXPECT_TRUE(helps({{"nvidia.com/mig-1g.5gb", "1"}}));
  EXPECT_TRUE(helps({{"nvidia.com/gpu", "1"}}));
  EXPECT_FALSE(helps({{"cpu", "8"}}));
}

TEST(GpuPartitioningTest, UnrelatedAnnotationsDoNotWakePod) {
  const GpuPartitioning plugin;
  const auto pod = PodOf("p", {{"nvidia.com/mig-7g.40gb", "1"}});
  const auto helps = [&](const Node& before, std::string key) {
    auto after = std::make_shared<Node>(before);
    after->meta.annotations[std::move(key)] = "x";
    return plugin.MayHelp(
        {Kind::kNodeChanged, std::make_shared<const Node>(before), after, nullptr, nullptr}, pod);
  };
  const Node managed = GpuNode("n", "", "");
  EXPECT_TRUE(helps(managed, "nos.nebuly.com/status-layout-0"));
  EXPECT_TRUE(helps(managed, "n8s.nebuly.ai/status-gpu-0-7g.40gb-free"));
  EXPECT_FALSE(helps(managed, "projectcalico.org/IPv4VXLANTunnelAddr"));
  EXPECT_FALSE(helps(NodeOf("n", {{"cpu", "8"}}), "nos.nebuly.com/status-layout-0"));
}

TEST(GpuPartitioningTest, HintsMissNoHelpfulEvent) {
  const GpuPartitioning plugin;
  Random random(5);
  const std::vector<cluster::Pod> pool = {
      PodOf("a", {{"nvidia.com/mig-1g.5gb", "2"}}), PodOf("b", {{"nvidia.com/mig-3g.20gb", "1"}}),
      PodOf("c", {{"nvidia.com/gpu", "1"}}), PodOf("d", {{"cpu", "1"}})};
  const std::vector<Node> nodes = {GpuNode("n", "", ""),
                                   GpuNode("n", "3g.20gb@4:used", "1g.5gb@0:free"),
                                   GpuNode("m", "7g.40gb@0:used", ""), NodeOf("m", {{"cpu", "8"}})};
  const auto pod = PodOf("p", {{"nvidia.com/mig-3g.20gb", "2"}, {"nvidia.com/mig-1g.5gb", "4"}});
  EXPECT_EQ(testing::HintFault(plugin, pod, testing::Snap({nodes[0], nodes[2]}), pool, nodes, 300,
                               random),
            "");
}

}  // namespace
}  // namespace nos::scheduling
