// Pools whose specs do not describe their nodes.
#include <algorithm>

#include "controllers/autoscaler/fixture_test.h"

namespace nos::controllers {
namespace {

class AutoscalerTemplateTest : public AutoscalerTest {
 protected:
  void UndescribedPool(const std::string& name, int min = 0, int wanted = 0) {
    Pool(name, "1", 5, min, wanted);
    Change("nodepools", name, [](Json& pool) {
      MakeObject(pool, "spec").erase("cpu");
      MakeObject(pool, "spec").erase("memory");
    });
  }
  std::string Learned(const std::string& pool, const char* field) {
    const Json* known = StatusOf(pool, "template");
    return known == nullptr ? "" : std::string(FindString(*known, field));
  }
  auto StatusWrites() const {
    return std::ranges::count_if(api_.writes, [](const kube::ApiRequest& request) {
      return request.path.ends_with("/nodepools/a/status");
    });
  }
};

TEST_F(AutoscalerTemplateTest, RequestsNoNodesOfPoolWithoutTemplate) {
  UndescribedPool("a");
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 0);
  EXPECT_EQ(Ready("a"),
            "False NoTemplate: has no node yet to learn from: give spec.cpu and spec.memory (and "
            "spec.gpu), or one node");
  EXPECT_THAT(ScalingCondition("p"), HasSubstr("False "));
}

TEST_F(AutoscalerTemplateTest, MinimumBringsFirstNodeOfPoolWithoutTemplate) {
  UndescribedPool("a", 2);
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 2);
  EXPECT_THAT(Ready("a"), HasSubstr("False NoTemplate"));
  Node("a1", "a");
  Node("a2", "a");
  Run(seconds(40));
  EXPECT_THAT(Ready("a"), HasSubstr("True Ready"));
}

TEST_F(AutoscalerTemplateTest, KeepsRecordedTemplateWhenNoNodeIsLeft) {
  UndescribedPool("a", 0, 1);
  Node("a1", "a");
  Run(seconds(10));
  EXPECT_THAT(Ready("a"), HasSubstr("True Ready"));
  EXPECT_EQ(Learned("a", "cpu"), "8");
  EXPECT_EQ(Learned("a", "memory"), "32Gi");
  const auto writes = StatusWrites();
  Run(minutes(5));
  EXPECT_EQ(StatusWrites(), writes) << "nothing is new";
  api_.Remove("nodes", "a1");
  Fleet("a", 0);
  Run(seconds(40));
  Restart();
  Pod("p", "4");
  Run(minutes(1));
  EXPECT_EQ(Wanted("a"), 1);
  EXPECT_THAT(ScalingCondition("p"), HasSubstr("True NodesComing"));
}

TEST_F(AutoscalerTemplateTest, SubtractsRequestsOfDaemonSetsFromTemplate) {
  UndescribedPool("a", 0, 1);
  Node("a1", "a");
  Pod("agent", "2");
  Change("pods", "ml/agent", [](Json& pod) {
    Json& owners = MakeObject(pod, "metadata")["ownerReferences"];
    owners.get_array()[0].get_object()["kind"] = "DaemonSet";
  });
  Bind("agent", "a1");
  Pod("p", "7");
  Run(minutes(1));
  EXPECT_EQ(Learned("a", "cpu"), "6");
  EXPECT_EQ(Wanted("a"), 1) << "the pod fits on no node of the pool";
}

TEST_F(AutoscalerTemplateTest, KeepsRecordedTemplateWhileANodeMatchesIt) {
  UndescribedPool("a", 0, 2);
  Node("a1", "a");
  Run(seconds(10));
  Node("a2", "a", true, "16");
  Run(minutes(1));
  EXPECT_EQ(Learned("a", "cpu"), "8");
  api_.Remove("nodes", "a1");
  Fleet("a", 1);
  Run(minutes(1));
  EXPECT_EQ(Learned("a", "cpu"), "16");
}

TEST_F(AutoscalerTemplateTest, OnlyContradictionToSpecMakesNodeWrong) {
  config_.shrink = false;
  Restart();
  Pool("described", "1", 5, 0, 1);
  Change("nodepools", "described", [](Json& pool) { MakeObject(pool, "spec").erase("memory"); });
  Node("t1", "described", true, "4");
  UndescribedPool("a", 0, 2);
  Node("a1", "a");
  Run(seconds(10));
  Node("a2", "a", true, "4");
  Run(minutes(15));
  EXPECT_EQ(
      Ready("described"),
      "True WrongNodes: Correct the NodePool or its Nodes: node t1 has 4 of cpu for pods, but "
      "the pool requires 8");
  EXPECT_EQ(Ready("a"), "True Ready: ");
}

TEST_F(AutoscalerTemplateTest, DoesNotRequestMoreNodesWhenNewNodesAreSmallerThanTemplate) {
  UndescribedPool("a", 0, 1);
  Node("a1", "a");
  Pod("first", "8");
  Bind("first", "a1");
  Pod("second", "8");
  Run(minutes(1));
  ASSERT_EQ(Wanted("a"), 2);
  Node("a2", "a", true, "4");
  Run(minutes(4));
  EXPECT_EQ(Wanted("a"), 2);
  EXPECT_EQ(Ready("a"), NotDelivered("a",
                                     "compared with earlier Nodes, node a2 has 4 of cpu for pods, "
                                     "but the pool requires 8"));
  EXPECT_THAT(ScalingCondition("second"), HasSubstr("False PoolClosed"));
  Run(minutes(4));
  EXPECT_EQ(Wanted("a"), 3) << "the next attempt";
}

TEST_F(AutoscalerTemplateTest, AcceptsNodeSlightlySmallerThanTemplate) {
  UndescribedPool("a", 0, 1);
  Node("a1", "a");
  Pod("first", "7");
  Bind("first", "a1");
  Pod("second", "7");
  Run(minutes(1));
  ASSERT_EQ(Wanted("a"), 2);
  Node("a2", "a", true, "7500m");
  Bind("second", "a2");
  Pod("third", "7");
  Run(seconds(40));
  EXPECT_EQ(Wanted("a"), 3) << "no starting node could run it";
}

TEST_F(AutoscalerTemplateTest, ReplacesInvalidTemplateInStatus) {
  UndescribedPool("a", 0, 1);
  Change("nodepools", "a", [](Json& pool) {
    MakeObject(pool, "status")["template"] = {
        {"cpu", "1"}, {"memory", "1Gi"}, {"labels", {{"-", "x"}}}};
  });
  Node("a1", "a");
  Run(seconds(40));
  EXPECT_EQ(Learned("a", "cpu"), "8");
  EXPECT_EQ(nos::Find(*StatusOf("a", "template"), "labels", "-"), nullptr);
}

}  // namespace
}  // namespace nos::controllers
