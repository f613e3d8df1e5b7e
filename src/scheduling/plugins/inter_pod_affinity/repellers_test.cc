#include "scheduling/plugins/inter_pod_affinity/repellers.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "scheduling/plugins/inter_pod_affinity/plugin.h"
#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

using cluster::LabelSelector;
using cluster::Pod;

Pod RandomPod(Random& random, std::string name, std::string node) {
  Pod pod = testing::PodOf(std::move(name), {}, std::move(node));
  if (random.Below(3) == 0) pod.meta.ns = "y";
  for (const char* key : {"app", "tier"}) {
    if (random.Below(3) != 0) pod.meta.labels[key] = std::to_string(random.Below(3));
  }
  return pod;
}

cluster::PodAffinityTerm RandomTerm(Random& random) {
  cluster::PodAffinityTerm term;
  term.topology_key = "zone";
  if (random.Below(8) != 0) term.selector.emplace();
  const std::string value = std::to_string(random.Below(3)),
                    other = std::to_string(random.Below(3));
  if (term.selector && random.Below(2) == 0) term.selector->match_labels["app"] = value;
  const char* ops[] = {"In", "NotIn", "Exists"};
  if (term.selector && random.Below(2) == 0) {
    const std::string op = ops[random.Below(3)];
    std::vector<std::string> values;
    if (op != "Exists") values = {value, other};
    term.selector->match_expressions.push_back({"tier", op, values});
  }
  if (random.Below(5) == 0) term.namespaces = {"y"};
  if (random.Below(5) == 0) term.namespace_selector = LabelSelector{{{"team", "red"}}, {}};
  return term;
}

TEST(RepellersTest, RepelsPodsThatPluginRefuses) {
  Random random(4);
  int repelled = 0;
  for (int round = 0; round < 400; ++round) {
    std::vector<Pod> running;
    for (uint64_t n = random.Below(4); n > 0; --n) {
      running.push_back(RandomPod(random, "r" + std::to_string(n), "a"));
      running.back().pod_anti_affinity.required = {RandomTerm(random)};
    }
    auto snapshot = testing::Snap({testing::NodeOf("a", {}, {{"zone", "1"}})}, running);
    auto ns = std::make_shared<cluster::Namespace>();
    ns->meta.labels = {{"team", "red"}};
    snapshot.ChangeContext().namespaces.Set("x", std::move(ns));
    Repellers repellers(snapshot.context());
    for (const auto& pod : snapshot.node(0).pods) {
      repellers.Add(pod);
      repellers.Add(pod);
    }
    const Pod pod = RandomPod(random, "p", "");
    CycleState state;
    const bool refused = !InterPodAffinity().PreFilter(pod, snapshot, state).skip;
    EXPECT_EQ(repellers.Repel(pod), refused) << "round " << round;
    repelled += refused ? 1 : 0;
  }
  EXPECT_GT(repelled, 100);
  EXPECT_LT(repelled, 300);
}

}  // namespace
}  // namespace nos::scheduling
