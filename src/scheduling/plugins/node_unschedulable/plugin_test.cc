#include "scheduling/plugins/node_unschedulable/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

TEST(NodeUnschedulableTest, CordonedNodeAcceptsOnlyToleratingPods) {
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

TEST(NodeUnschedulableTest, OnlyUncordonedNodesWakePod) {
  const auto open = std::make_shared<const cluster::Node>(testing::NodeOf("a"));
  auto node = testing::NodeOf("a");
  node.unschedulable = true;
  const auto cordoned = std::make_shared<const cluster::Node>(node);
  const NodeUnschedulable plugin;
  const auto pod = testing::PodOf("p");
  using enum ClusterEvent::Kind;
  EXPECT_TRUE(plugin.MayHelp({kNodeAdded, nullptr, open}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeAdded, nullptr, cordoned}, pod));
  EXPECT_TRUE(plugin.MayHelp({kNodeChanged, cordoned, open}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, open, open}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, open, cordoned}, pod));
  EXPECT_FALSE(plugin.MayHelp({kPodLeft}, pod));
}

}  // namespace
}  // namespace nos::scheduling
