#include "scheduling/plugins/node_name/plugin.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

TEST(NodeNameTest, FitsOnlyNamedNode) {
  const NodeName plugin;
  const auto snapshot = testing::Snap({testing::NodeOf("a"), testing::NodeOf("b")});
  const auto named = testing::PodOf("p", {}, "b");
  const auto free = testing::PodOf("q");
  EXPECT_EQ(plugin.Filter({}, named, snapshot.node(0)).message,
            "node(s) didn't match the requested node name");
  EXPECT_TRUE(plugin.Filter({}, named, snapshot.node(1)).fits());
  EXPECT_TRUE(plugin.Filter({}, free, snapshot.node(0)).fits());
  EXPECT_FALSE(plugin.Concerns(free));
  CycleState state;
  EXPECT_EQ(plugin.PreFilter(named, snapshot, state).nodes, std::set<std::string>{"b"});
  EXPECT_FALSE(plugin.PreFilter(free, snapshot, state).nodes.has_value());
}

TEST(NodeNameTest, OnlyAddedNamedNodeWakesPod) {
  const auto node = std::make_shared<const cluster::Node>(testing::NodeOf("b"));
  const NodeName plugin;
  using enum ClusterEvent::Kind;
  EXPECT_TRUE(plugin.MayHelp({kNodeAdded, nullptr, node}, testing::PodOf("p", {}, "b")));
  EXPECT_FALSE(plugin.MayHelp({kNodeAdded, nullptr, node}, testing::PodOf("p", {}, "a")));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, node, node}, testing::PodOf("p", {}, "b")));
}

}  // namespace
}  // namespace nos::scheduling
