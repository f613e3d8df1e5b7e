#include "scheduling/plugins/taint_toleration/taint_toleration.h"

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

TEST(TaintTolerationTest, StrictTaintsMustAllBeTolerated) {
  const cluster::Taint gpu{"gpu", "a100", "NoSchedule"};
  const cluster::Taint out{"out", "", "NoExecute"};
  EXPECT_TRUE(Filter({}, {}).fits());
  EXPECT_EQ(Filter({gpu}, {}).message, "node(s) had untolerated taint {gpu: a100}");
  EXPECT_EQ(Filter({gpu}, {}).kind, Verdict::Kind::kUnresolvable);
  EXPECT_TRUE(Filter({gpu}, {{"gpu", "Equal", "a100", "NoSchedule"}}).fits());
  EXPECT_EQ(Filter({gpu, out}, {{"gpu", "Exists", "", ""}}).message,
            "node(s) had untolerated taint {out: }");
  EXPECT_TRUE(Filter({gpu, out}, {{"", "Exists", "", ""}}).fits());
  EXPECT_FALSE(Filter({gpu, out}, {{"", "Exists", "", "NoSchedule"}}).fits());
}

TEST(TaintTolerationTest, SoftTaintsOnlyLowerTheScore) {
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

}  // namespace
}  // namespace nos::scheduling
