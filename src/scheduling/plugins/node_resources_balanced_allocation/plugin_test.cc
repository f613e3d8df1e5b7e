#include "scheduling/plugins/node_resources_balanced_allocation/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using testing::NodeOf;
using testing::PodOf;

const BalanceOptions kWithGpus{{{"cpu", 1}, {"memory", 1}, {"nvidia.com/gpu", 1}}};

int64_t Score(const cluster::Pod& pod, const cluster::Node& node, const cluster::Pod& running,
              const BalanceOptions& options = {}) {
  const auto snapshot = testing::Snap({node}, {running});
  const NodeResourcesBalancedAllocation plugin(options);
  CycleState state;
  EXPECT_TRUE(plugin.PreScore(pod, snapshot, {}, state));
  const int64_t score = plugin.Score(state, pod, snapshot.node(0));
  EXPECT_EQ(score, plugin.Score({}, pod, snapshot.node(0)));
  return score;
}

TEST(NodeResourcesBalancedAllocationTest, LowersScoreByDeviationOfFractions) {
  const auto both = PodOf("p", {{"cpu", "3"}, {"memory", "5k"}});
  const auto cpu = PodOf("q", {{"cpu", "3"}}, "a");
  const auto none = PodOf("r", {}, "elsewhere");
  EXPECT_EQ(Score(both, NodeOf("a", {{"cpu", "4"}, {"memory", "10k"}}), none), 87);
  EXPECT_EQ(Score(both, NodeOf("a", {{"cpu", "6"}, {"memory", "10k"}}), none), 100);
  EXPECT_EQ(Score(both, NodeOf("a", {{"cpu", "10"}, {"memory", "20k"}}), cpu), 82);
  // Fractions are capped at 1.
  EXPECT_EQ(Score(PodOf("p", {{"cpu", "9"}}), NodeOf("a", {{"cpu", "6"}, {"memory", "10k"}}), cpu),
            50);
  // A single resource is always balanced.
  EXPECT_EQ(Score(both, NodeOf("a", {{"cpu", "4"}}), none), 100);
  EXPECT_EQ(Score(both, NodeOf("a"), none), 100);
}

TEST(NodeResourcesBalancedAllocationTest, ScoresDevicesOnlyForPodsThatRequestThem) {
  const auto node = NodeOf("a", {{"cpu", "3500m"}, {"memory", "40k"}, {"nvidia.com/gpu", "8"}});
  const auto running = PodOf("q", {{"cpu", "3"}, {"memory", "5k"}, {"nvidia.com/gpu", "3"}}, "a");
  const auto one_gpu = PodOf("p", {{"nvidia.com/gpu", "1"}});
  EXPECT_EQ(Score(one_gpu, node, running, kWithGpus), 70);
  EXPECT_EQ(Score(one_gpu, node, PodOf("q", {{"cpu", "3"}, {"memory", "5k"}}, "a"), kWithGpus), 65);
  const auto plain = PodOf("p", {{"cpu", "3"}, {"memory", "5k"}});
  EXPECT_EQ(Score(plain, node, PodOf("q"), kWithGpus), 63);
  BalanceOptions leaving = kWithGpus;
  leaving.leaves_gpus = true;
  EXPECT_EQ(Score(plain, node, PodOf("q"), leaving), 0);
}

TEST(NodeResourcesBalancedAllocationTest, DoesNotScorePodsWithoutRequests) {
  CycleState state;
  EXPECT_FALSE(
      NodeResourcesBalancedAllocation().PreScore(PodOf("p", {{"x.com/d", "1"}}), {}, {}, state));
}

}  // namespace
}  // namespace nos::scheduling
