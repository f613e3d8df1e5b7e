// Spec annotations that no agent can carry out are removed as soon as the node is seen.
#include "controllers/partitioner/fixture_test.h"
#include "kube/testing/refuse.h"

namespace nos::controllers {
namespace {

TEST_F(PartitionerTest, RemovesInvalidSpecAnnotations) {
  Node("a", {{0, "3g.20gb@4:used"}, {1, ""}});
  Annotate("a", "spec-partitioning-plan", "7");
  Annotate("a", "status-partitioning-plan", "7");
  Annotate("a", "spec-layout-99", "7g.40gb@0");  // no such GPU
  Annotate("a", "spec-layout-0", "3g.20gb@3");   // no such placement
  Annotate("a", "spec-layout-1", "7g.40gb@0");   // contradicts the counts below
  Annotate("a", "spec-gpu-1-1g.5gb", "2");
  Annotate("a", "spec-gpu-zero-1g.5gb", "1");
  Node("whole", {{0, ""}});
  Annotate("whole", "spec-layout-0", "3g.20gb@4");
  Annotate("whole", "spec-gpu-0-3g.20gb", "1");
  Run();
  for (const char* key : {"spec-layout-99", "spec-layout-0", "spec-layout-1", "spec-gpu-1-1g.5gb",
                          "spec-gpu-zero-1g.5gb"}) {
    EXPECT_EQ(Annotation("a", key), "") << key;
  }
  EXPECT_EQ(PlanOf("a"), "7") << "no new plan is requested";
  EXPECT_EQ(Patches("a"), 1);
  EXPECT_EQ(Patches("whole"), 0);
  EXPECT_GE(CountEvents("SpecRepaired"), 1) << Events();
  EXPECT_EQ(partitioner_->decisions().back().note,
            "spec repaired: spec-gpu-1-1g.5gb=2: GPU 1 cannot be partitioned like that, or counts "
            "and layout differ; spec-gpu-zero-1g.5gb=1: the key is malformed; "
            "spec-layout-0=3g.20gb@3: GPU 0 cannot be partitioned like that, or counts and layout "
            "differ; and 2 more");
}

TEST_F(PartitionerTest, KeepsSpecOfGpuWithUnreadableStatus) {
  Node("a", {{0, ""}, {1, "nonsense"}});
  Annotate("a", "spec-layout-1", "7g.40gb@0");
  Annotate("a", "spec-gpu-1-7g.40gb", "1");
  Node("b", {{0, ""}});
  Annotate("b", "spec-layout-3", "7g.40gb@0");
  Change("nodes", "b", [](Json& node) {  // how many GPUs it has is not known
    MakeObject(node, "metadata", "labels").erase("nvidia.com/gpu.count");
  });
  Run();
  EXPECT_EQ(Patches("a") + Patches("b"), 0);
}

TEST_F(PartitionerTest, RemovesPlanIdWithoutSuccessor) {
  for (const char* plan : {"9223372036854775807", "9223372036854775806", "-3", "yesterday"}) {
    Node("a", {{0, ""}});
    Annotate("a", "spec-partitioning-plan", plan);
    Annotate("a", "status-partitioning-plan", plan);
    Run();
    EXPECT_EQ(PlanOf("a"), "") << plan;
    EXPECT_GE(CountEvents("SpecRepaired"), 1) << Events();
    Pod("p", "7g.40gb");
    Run();
    EXPECT_EQ(PlanOf("a"), "1") << plan;
    api_.Remove("pods", "ml/p");
    api_.Remove("nodes", "a");
    Run();
  }
}

TEST_F(PartitionerTest, PlanIdsStartOverAfterTheGreatest) {
  Node("a", {{0, ""}});
  Annotate("a", "spec-partitioning-plan", "9007199254740992");
  Annotate("a", "status-partitioning-plan", "9007199254740992");
  std::string last = PlanOf("a");
  const std::vector<std::string> profiles = {"7g.40gb", "1g.5gb", "3g.20gb"};
  for (const std::string& profile : profiles) {
    Pod(profile, profile);
    Run();
    EXPECT_NE(PlanOf("a"), last);
    last = PlanOf("a");
    Acknowledge("a", {{0, Spec("a") + ":free"}});
    Run();
    EXPECT_EQ(partitioner_->decisions().back().note, "applied");
    api_.Remove("pods", "ml/" + profile);
    Acknowledge("a", {{0, ""}});
    Run();
  }
  EXPECT_EQ(last, "3");
}

TEST_F(PartitionerTest, PlanIdsStartOverEvenIfAPlanWasNotAcknowledged) {
  Node("a", {{0, ""}});
  Annotate("a", "spec-partitioning-plan", "9007199254740992");
  Annotate("a", "status-partitioning-plan", "9007199254740992");
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(PlanOf("a"), "1");
  api_.Remove("pods", "ml/p");
  Run(minutes(5));
  Pod("q", "1g.5gb");
  Run(seconds(20));
  EXPECT_EQ(PlanOf("a"), "2");
}

TEST_F(PartitionerTest, PlansAgainForPendingPodsAfterRepair) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(Spec("a"), "7g.40gb@0");
  Annotate("a", "spec-layout-0", "7g.40gb@1");  // before the agent has read it
  Run();
  EXPECT_EQ(Spec("a"), "");
  Annotate("a", "status-partitioning-plan", PlanOf("a"));
  Run(minutes(3));
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
}

TEST_F(PartitionerTest, RepairsOfRepeatedlyDamagedSpecBackOff) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  for (int second = 0; second < 600; ++second) {
    Annotate("a", "spec-layout-99", "7g.40gb@0");
    Run(seconds(1));
  }
  EXPECT_LT(Patches("a"), 12);
  Annotate("b", "spec-layout-99", "7g.40gb@0");
  Run(milliseconds(1));
  EXPECT_EQ(Annotation("b", "spec-layout-99"), "") << "another node does not wait";
  Run(minutes(30));
  EXPECT_EQ(Annotation("a", "spec-layout-99"), "") << "it is repaired in the end";
}

TEST_F(PartitionerTest, RefusedRepairDoesNotDelayPlanning) {
  Node("a", {{0, ""}});
  Annotate("a", "spec-layout-99", "7g.40gb@0");
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  const auto refused = Refuse(api_, "PATCH", "/nodes/a", Status(Code::kPermission, "no"));
  Change("nodes", "a", [](Json& node) { MakeObject(node, "spec")["unschedulable"] = true; });
  Run(seconds(30));
  EXPECT_EQ(Spec("b"), "7g.40gb@0");
  EXPECT_GT(*refused, 1);
  EXPECT_LT(*refused, 8);
  api_.intercept = nullptr;
  Run(minutes(5));
  EXPECT_EQ(Annotation("a", "spec-layout-99"), "");
}

}  // namespace
}  // namespace nos::controllers
