#include "cluster/selectors.h"

#include <gtest/gtest.h>

namespace nos::cluster {
namespace {

Node Labelled(StringMap labels) {
  Node node;
  node.meta.name = "n1";
  node.meta.labels = std::move(labels);
  return node;
}

TEST(RequirementTest, MatchesWithEveryOperator) {
  const StringMap labels{{"zone", "a"}, {"cores", "8"}, {"word", "x"}, {"empty", ""}};
  const auto matches = [&](const char* key, const char* op, std::vector<std::string> values) {
    return Matches(SelectorRequirement{key, op, std::move(values)}, labels);
  };
  EXPECT_TRUE(matches("zone", "In", {"b", "a"}));
  EXPECT_FALSE(matches("zone", "In", {"b"}));
  EXPECT_FALSE(matches("other", "In", {"a"}));
  EXPECT_TRUE(matches("empty", "In", {""}));
  EXPECT_TRUE(matches("zone", "NotIn", {"b"}));
  EXPECT_FALSE(matches("zone", "NotIn", {"a"}));
  EXPECT_TRUE(matches("other", "NotIn", {"a"}));
  EXPECT_TRUE(matches("zone", "Exists", {}));
  EXPECT_FALSE(matches("other", "Exists", {}));
  EXPECT_TRUE(matches("other", "DoesNotExist", {}));
  EXPECT_FALSE(matches("zone", "DoesNotExist", {}));
  EXPECT_TRUE(matches("cores", "Gt", {"7"}));
  EXPECT_FALSE(matches("cores", "Gt", {"8"}));
  EXPECT_TRUE(matches("cores", "Lt", {"9"}));
  EXPECT_FALSE(matches("cores", "Lt", {"8"}));
}

TEST(RequirementTest, InvalidRequirementsMatchNothing) {
  const StringMap labels{{"zone", "a"}, {"cores", "8"}, {"word", "x"}};
  const auto matches = [&](const char* key, const char* op, std::vector<std::string> values) {
    return Matches(SelectorRequirement{key, op, std::move(values)}, labels);
  };
  EXPECT_FALSE(matches("zone", "In", {}));
  EXPECT_FALSE(matches("other", "NotIn", {}));
  EXPECT_FALSE(matches("zone", "Exists", {"a"}));
  EXPECT_FALSE(matches("cores", "Gt", {}));
  EXPECT_FALSE(matches("cores", "Gt", {"1", "2"}));
  EXPECT_FALSE(matches("cores", "Gt", {"one"}));
  EXPECT_FALSE(matches("word", "Lt", {"9"}));
  EXPECT_FALSE(matches("missing", "Lt", {"9"}));
  EXPECT_FALSE(matches("zone", "Equals", {"a"}));
}

TEST(NodeSelectorTest, TermsAreAlternativesAndEmptyOnesMatchNothing) {
  const Node node = Labelled({{"zone", "a"}});
  const NodeSelectorTerm zone_a{{{"zone", "In", {"a"}}}, {}};
  const NodeSelectorTerm zone_b{{{"zone", "In", {"b"}}}, {}};
  EXPECT_FALSE(Matches(NodeSelectorTerm{}, node));
  EXPECT_FALSE(MatchesAny({}, node));
  EXPECT_FALSE(MatchesAny({zone_b, {}}, node));
  EXPECT_TRUE(MatchesAny({zone_b, zone_a}, node));
  EXPECT_FALSE(Matches(NodeSelectorTerm{{{"zone", "In", {"a"}}, {"zone", "In", {"b"}}}, {}}, node));
}

TEST(NodeSelectorTest, MatchFieldsSupportOnlyTheNodeName) {
  const Node node = Labelled({});
  const auto matches = [&](const char* key, const char* op, std::vector<std::string> values) {
    return Matches(NodeSelectorTerm{{}, {{key, op, std::move(values)}}}, node);
  };
  EXPECT_TRUE(matches("metadata.name", "In", {"n1"}));
  EXPECT_FALSE(matches("metadata.name", "In", {"n2"}));
  EXPECT_TRUE(matches("metadata.name", "NotIn", {"n2"}));
  EXPECT_FALSE(matches("metadata.name", "NotIn", {"n1"}));
  EXPECT_FALSE(matches("metadata.name", "In", {"n1", "n2"}));
  EXPECT_FALSE(matches("metadata.name", "Exists", {}));
  EXPECT_FALSE(matches("metadata.namespace", "NotIn", {"x"}));
}

TEST(NodeSelectorTest, SelectorAndRequiredAffinityMustBothHold) {
  const Node node = Labelled({{"zone", "a"}, {"gpu", "yes"}});
  Pod pod;
  EXPECT_TRUE(SelectsNode(pod, node));
  pod.node_selector = {{"gpu", "yes"}};
  EXPECT_TRUE(SelectsNode(pod, node));
  pod.node_affinity.emplace();
  EXPECT_TRUE(SelectsNode(pod, node));
  pod.node_affinity->required.emplace();
  EXPECT_FALSE(SelectsNode(pod, node));
  pod.node_affinity->required->push_back({{{"zone", "Exists", {}}}, {}});
  EXPECT_TRUE(SelectsNode(pod, node));
  pod.node_selector["gpu"] = "no";
  EXPECT_FALSE(SelectsNode(pod, node));
}

TEST(TolerationTest, ComparesKeyOperatorValueAndEffect) {
  const Taint taint{"gpu", "a100", "NoSchedule"};
  EXPECT_TRUE(Tolerates(Toleration{"gpu", "Equal", "a100", "NoSchedule"}, taint));
  EXPECT_TRUE(Tolerates(Toleration{"gpu", "", "a100", ""}, taint));
  EXPECT_FALSE(Tolerates(Toleration{"gpu", "Equal", "h100", ""}, taint));
  EXPECT_FALSE(Tolerates(Toleration{"gpu", "", "", ""}, taint));
  EXPECT_TRUE(Tolerates(Toleration{"gpu", "Exists", "", ""}, taint));
  EXPECT_FALSE(Tolerates(Toleration{"gpu", "Exists", "", "NoExecute"}, taint));
  EXPECT_FALSE(Tolerates(Toleration{"cpu", "Exists", "", ""}, taint));
  EXPECT_TRUE(Tolerates(Toleration{"", "Exists", "", ""}, taint));
  EXPECT_FALSE(Tolerates(Toleration{"", "Exists", "", "NoExecute"}, taint));
  EXPECT_FALSE(Tolerates(Toleration{"", "Equal", "a100", ""}, taint));
  EXPECT_FALSE(Tolerates(Toleration{"gpu", "Like", "a100", ""}, taint));
  EXPECT_FALSE(Tolerates(std::vector<Toleration>{}, taint));
}

TEST(LabelSelectorTest, ReadsQueries) {
  const StringMap labels{{"app", "web"}, {"env", "a"}, {"cores", "8"}};
  const auto selects = [&](std::string_view text) {
    const auto selector = ParseLabelSelector(text);
    EXPECT_TRUE(selector.ok()) << text << ": " << selector.status().ToString();
    return Matches(selector.value_or({}), labels);
  };
  EXPECT_TRUE(selects(""));
  EXPECT_TRUE(selects("app=web,env in (a, b),!legacy,cores>4"));
  EXPECT_TRUE(selects("app==web, env!=c , app"));
  EXPECT_TRUE(selects("env notin (c)"));
  EXPECT_FALSE(selects("app=web,legacy"));
  EXPECT_FALSE(selects("cores<8"));
  EXPECT_FALSE(selects("app="));
  for (const char* text : {",", "a b", "a in b", "a in (b", "=x", "!", "a!b", "a>b", "x is (y)"}) {
    EXPECT_FALSE(ParseLabelSelector(text).ok()) << text;
  }
}

}  // namespace
}  // namespace nos::cluster
