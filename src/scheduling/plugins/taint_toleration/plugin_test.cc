#include "scheduling/plugins/taint_toleration/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

Verdict Filter(std::vector<cluster::Taint> taints, std::vector<cluster::Toleration> tolerations) {
  auto node = testing::NodeOf("a");
  node.taints = std::move(taints);
  auto pod = testing::PodOf("p");
  pod.tolerations = std::move(tolerations);
  return TaintToleration().Filter({}, pod, testing::Snap({node}).node(0));
}

TEST(TaintTolerationTest, RequiresTolerationOfAllStrictTaints) {
  const cluster::Taint gpu{"gpu", "a100", "NoSchedule"};
  const cluster::Taint out{"out", "", "NoExecute"};
  EXPECT_TRUE(Filter({}, {}).fits());
  EXPECT_EQ(Filter({gpu}, {}).message, "node(s) had untolerated taint(s)");
  EXPECT_EQ(Filter({gpu}, {}).kind, Verdict::Kind::kUnresolvable);
  EXPECT_TRUE(Filter({gpu}, {{"gpu", "Equal", "a100", "NoSchedule"}}).fits());
  EXPECT_FALSE(Filter({gpu, out}, {{"gpu", "Exists", "", ""}}).fits());
  EXPECT_TRUE(Filter({gpu, out}, {{"", "Exists", "", ""}}).fits());
  EXPECT_FALSE(Filter({gpu, out}, {{"", "Exists", "", "NoSchedule"}}).fits());
}

TEST(TaintTolerationTest, PreferNoScheduleOnlyLowersScore) {
  EXPECT_TRUE(Filter({{"slow", "", "PreferNoSchedule"}}, {}).fits());
  auto slow = testing::NodeOf("a");
  slow.taints = {{"slow", "", "PreferNoSchedule"}, {"old", "", "PreferNoSchedule"}};
  const auto snapshot = testing::Snap({slow});
  const TaintToleration plugin;
  auto pod = testing::PodOf("p");
  EXPECT_EQ(plugin.Score({}, pod, snapshot.node(0)), 2);
  pod.tolerations = {{"slow", "Exists", "", ""}};
  EXPECT_EQ(plugin.Score({}, pod, snapshot.node(0)), 1);
  std::vector<int64_t> scores{0, 1, 2};
  for (int64_t& score : scores) score = plugin.Normalized(score, 0, 2);
  EXPECT_EQ(scores, (std::vector<int64_t>{100, 50, 0}));
}

TEST(TaintTolerationTest, OnlyNewlyToleratedNodesWakePod) {
  const auto node = [](std::vector<cluster::Taint> taints) {
    auto made = testing::NodeOf("a");
    made.taints = std::move(taints);
    return std::make_shared<const cluster::Node>(std::move(made));
  };
  const cluster::Taint strict{"gpu", "", "NoSchedule"}, soft{"gpu", "", "PreferNoSchedule"};
  const TaintToleration plugin;
  const auto pod = testing::PodOf("p");
  using enum ClusterEvent::Kind;
  EXPECT_TRUE(plugin.MayHelp({kNodeAdded, nullptr, node({soft})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeAdded, nullptr, node({strict})}, pod));
  EXPECT_TRUE(plugin.MayHelp({kNodeChanged, node({strict}), node({soft})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, node({soft}), node({})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, node({}), node({strict})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kPodLeft}, pod));
  auto tolerant = pod;
  tolerant.tolerations = {{"gpu", "Exists", "", ""}};
  EXPECT_TRUE(plugin.MayHelp({kNodeAdded, nullptr, node({strict})}, tolerant));
}

}  // namespace
}  // namespace nos::scheduling
