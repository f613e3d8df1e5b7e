#include "scheduling/plugins/node_affinity/plugin.h"

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

TEST(NodeAffinityTest, FiltersBySelectorAndRequiredTerms) {
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

TEST(NodeAffinityTest, RestrictsNodesOnlyIfEveryTermNamesOne) {
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
  EXPECT_EQ(nodes(Requiring({})), std::nullopt);
  EXPECT_EQ(nodes(testing::PodOf("p")), std::nullopt);
}

TEST(NodeAffinityTest, AddsUpPreferredTerms) {
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

TEST(NodeAffinityTest, RequiresAllRequirementsOfOneTerm) {
  const NodeAffinity plugin;
  const NodeSelectorTerm a_and_b{{},
                                 {{"metadata.name", "In", {"a"}}, {"metadata.name", "In", {"b"}}}};
  CycleState state;
  const auto conflict = plugin.PreFilter(Requiring({a_and_b}), {}, state);
  EXPECT_EQ(conflict.verdict.message, "pod affinity terms conflict");
  EXPECT_EQ(conflict.verdict.kind, Verdict::Kind::kUnresolvable);
  const NodeSelectorTerm c{{}, {{"metadata.name", "In", {"c"}}}};
  const auto outcome = plugin.PreFilter(Requiring({a_and_b, c}), {}, state);
  EXPECT_EQ(outcome.nodes, std::set<std::string>{"c"});
  EXPECT_EQ(outcome.elsewhere.message, "node(s) didn't satisfy plugin(s) [NodeAffinity]");
}

NodeAffinity Adding() {
  NodeAffinityOptions options;
  options.added.required = {{{{"zone", "In", {"a"}}}, {}}};
  options.added.preferred = {{7, {{{"ssd", "Exists", {}}}, {}}}};
  return NodeAffinity(options);
}

TEST(NodeAffinityTest, AppliesAddedAffinityOfProfile) {
  const NodeAffinity plugin = Adding();
  const auto snapshot = testing::Snap({testing::NodeOf("a", {}, {{"zone", "a"}, {"ssd", ""}}),
                                       testing::NodeOf("b", {}, {{"zone", "b"}})});
  auto pod = testing::PodOf("p");
  CycleState state;
  EXPECT_TRUE(plugin.Concerns(pod));
  EXPECT_FALSE(plugin.PreFilter(pod, snapshot, state).skip);
  EXPECT_TRUE(plugin.Filter({}, pod, snapshot.node(0)).fits());
  const Verdict verdict = plugin.Filter({}, pod, snapshot.node(1));
  EXPECT_EQ(verdict.message, "node(s) didn't match scheduler-enforced node affinity");
  EXPECT_EQ(verdict.kind, Verdict::Kind::kUnresolvable);
  EXPECT_TRUE(plugin.PreScore(pod, snapshot, {}, state));
  EXPECT_EQ(plugin.Score({}, pod, snapshot.node(0)), 7);
  pod.node_affinity.emplace().preferred = {{10, {{{"zone", "In", {"a"}}}, {}}}};
  EXPECT_EQ(plugin.Score({}, pod, snapshot.node(0)), 17);
  EXPECT_EQ(plugin.Score({}, pod, snapshot.node(1)), 0);
}

TEST(NodeAffinityTest, SkipsPodsWithoutSelectorAndAffinity) {
  const NodeAffinity plugin;
  CycleState state;
  auto pod = testing::PodOf("p");
  EXPECT_TRUE(plugin.PreFilter(pod, {}, state).skip);
  EXPECT_FALSE(plugin.PreScore(pod, {}, {}, state));
  pod.node_affinity.emplace().preferred = {{10, {{{"zone", "In", {"a"}}}, {}}}};
  EXPECT_TRUE(plugin.PreFilter(pod, {}, state).skip);
  EXPECT_TRUE(plugin.PreScore(pod, {}, {}, state));
}

TEST(NodeAffinityTest, OnlyNewlyMatchingNodesWakePod) {
  const auto pod = [] {
    auto p = testing::PodOf("p");
    p.node_selector = {{"zone", "a"}};
    return p;
  }();
  const auto node = [](cluster::StringMap labels) {
    return std::make_shared<const cluster::Node>(testing::NodeOf("n", {}, std::move(labels)));
  };
  using enum ClusterEvent::Kind;
  const NodeAffinity plugin;
  EXPECT_TRUE(plugin.MayHelp({kNodeAdded, nullptr, node({{"zone", "a"}})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeAdded, nullptr, node({{"zone", "b"}})}, pod));
  EXPECT_TRUE(plugin.MayHelp({kNodeChanged, node({}), node({{"zone", "a"}})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, node({{"zone", "a"}}), node({{"zone", "a"}})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kNodeChanged, node({{"zone", "a"}}), node({})}, pod));
  EXPECT_FALSE(plugin.MayHelp({kPodLeft}, pod));
  EXPECT_TRUE(
      Adding().MayHelp({kNodeChanged, node({}), node({{"zone", "a"}})}, testing::PodOf("q")));
}

}  // namespace
}  // namespace nos::scheduling
