#include "scheduling/plugins/node_unschedulable/node_unschedulable.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

TEST(NodeUnschedulableTest, CordonedNodesTakeOnlyPodsThatTolerateIt) {
  const NodeUnschedulable plugin;
  auto cordoned = testing::NodeOf("a");
  cordoned.unschedulable = true;
  const auto snapshot = testing::Snap({cordoned, testing::NodeOf("b")});
  auto pod = testing::PodOf("p");
  const Verdict verdict = plugin.Filter({}, pod, snapshot.node(0));
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
  EXPECT_EQ(verdict.message, "node(s) were unschedulable");
  EXPECT_TRUE(plugin.Filter({}, pod, snapshot.node(1)).fits());
  pod.tolerations = {{"node.kubernetes.io/unschedulable", "Exists", "", "NoExecute"}};
  EXPECT_FALSE(plugin.Filter({}, pod, snapshot.node(0)).fits());
  pod.tolerations = {{"node.kubernetes.io/unschedulable", "Exists", "", "NoSchedule"}};
  EXPECT_TRUE(plugin.Filter({}, pod, snapshot.node(0)).fits());
  pod.tolerations = {{"", "Exists", "", ""}};
  EXPECT_TRUE(plugin.Filter({}, pod, snapshot.node(0)).fits());
}

}  // namespace
}  // namespace nos::scheduling
