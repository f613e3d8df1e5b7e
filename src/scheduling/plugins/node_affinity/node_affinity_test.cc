#include "scheduling/plugins/node_affinity/node_affinity.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::NodeSelectorTerm;

cluster::Pod Requiring(std::vector<NodeSelectorTerm> terms) {
  auto pod = testing::PodOf("p");
  pod.node_affinity.emplace().required = std::move(terms);
  return pod;
}

TEST(NodeAffinityTest, SelectorAndRequiredTermsDecide) {
  const NodeAffinity plugin;
  const auto snapshot = testing::Snap({testing::NodeOf("a", {}, {{"zone", "a"}})});
  const auto fits = [&](const cluster::Pod& pod) {
    return plugin.Filter({}, pod, snapshot.node(0)).fits();
  };
  auto pod = testing::PodOf("p");
  EXPECT_FALSE(plugin.Concerns(pod));
  EXPECT_TRUE(fits(pod));
  pod.node_selector = {{"zone", "b"}};
  EXPECT_TRUE(plugin.Concerns(pod));
  EXPECT_FALSE(fits(pod));
  EXPECT_EQ(plugin.Filter({}, pod, snapshot.node(0)).message,
            "node(s) didn't match Pod's node affinity/selector");
  EXPECT_TRUE(fits(Requiring({{{{"zone", "In", {"a"}}}, {}}})));
  EXPECT_FALSE(fits(Requiring({{{{"zone", "NotIn", {"a"}}}, {}}})));
  EXPECT_FALSE(fits(Requiring({})));
  EXPECT_FALSE(fits(Requiring({{}})));
}

TEST(NodeAffinityTest, LooksAtNamedNodesOnlyWhenEveryTermNamesOne) {
  const NodeAffinity plugin;
  const auto nodes = [&](const cluster::Pod& pod) {
    CycleState state;
    return plugin.PreFilter(pod, {}, state).nodes;
  };
  const NodeSelectorTerm a{{}, {{"metadata.name", "In", {"a"}}}};
  const NodeSelectorTerm b{{{"zone", "Exists", {}}}, {{"metadata.name", "In", {"b"}}}};
  const NodeSelectorTerm not_c{{}, {{"metadata.name", "NotIn", {"c"}}}};
  EXPECT_EQ(nodes(Requiring({a, b})), (std::set<std::string>{"a", "b"}));
  EXPECT_EQ(nodes(Requiring({a, not_c})), std::nullopt);
  EXPECT_EQ(nodes(Requiring({})), std::set<std::string>{});
  EXPECT_EQ(nodes(testing::PodOf("p")), std::nullopt);
}

TEST(NodeAffinityTest, PreferredTermsAddUp) {
  const NodeAffinity plugin;
  const auto snapshot = testing::Snap({testing::NodeOf("a", {}, {{"zone", "a"}, {"ssd", ""}})});
  auto pod = testing::PodOf("p");
  EXPECT_EQ(plugin.Score({}, pod, snapshot.node(0)), 0);
  pod.node_affinity.emplace().preferred = {{10, {{{"zone", "In", {"a"}}}, {}}},
                                           {5, {{{"ssd", "Exists", {}}}, {}}},
                                           {80, {{{"zone", "In", {"b"}}}, {}}},
                                           {100, {}}};
  EXPECT_FALSE(plugin.Concerns(pod));
  EXPECT_EQ(plugin.Score({}, pod, snapshot.node(0)), 15);
}

}  // namespace
}  // namespace nos::scheduling
