// Slices that are reserved for a pod or planned on a node are not given to other pods.
#include "controllers/partitioner/fixture_test.h"

namespace nos::controllers {
namespace {

TEST_F(PartitionerTest, DoesNotReplanNodeBeforeItAcknowledges) {
  Node("a", {{0, ""}, {1, ""}});
  Pod("p", "7g.40gb");
  Run();
  const std::string plan = PlanOf("a");
  Pod("q", "7g.40gb");
  Run(seconds(20));
  EXPECT_EQ(PlanOf("a"), plan);
  Acknowledge("a", {{0, Spec("a", 0).empty() ? "" : "7g.40gb@0:free"},
                    {1, Spec("a", 1).empty() ? "" : "7g.40gb@0:free"}});
  Run();
  EXPECT_NE(PlanOf("a"), plan) << "now it is q's turn";
}

// The Go partitioner could take away a slice of one pod for another before the pod was bound.
TEST_F(PartitionerTest, DoesNotRepartitionReservedSlices) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  for (int i = 0; i < 7; ++i) Pod("small" + std::to_string(i), "1g.5gb");
  Run(seconds(30));
  EXPECT_EQ(PlanOf("a"), "1");
  Bind("p", "a");
  Annotate("a", "status-layout-0", "7g.40gb@0:used");
  Run(minutes(5));
  EXPECT_EQ(PlanOf("a"), "1");
}

TEST_F(PartitionerTest, ReservationExpiresIfPodIsNotBound) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  Run();
  Pod("small", "1g.5gb");
  Run(seconds(70));
  EXPECT_GE(CountEvents("SliceReservationExpired"), 1);
  EXPECT_EQ(Spec("a").rfind("1g.5gb@", 0), 0u) << Spec("a");
}

TEST_F(PartitionerTest, ReplacesReservedSliceThatAnotherPodTook) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  const std::string first = PlanOf("a").empty() ? "b" : "a";
  const std::string second = first == "a" ? "b" : "a";
  Acknowledge(first, {{0, "7g.40gb@0:free"}});
  Run();
  Pod("thief", "7g.40gb");
  Bind("thief", first);
  Run();
  EXPECT_EQ(Spec(second), "7g.40gb@0");
}

TEST_F(PartitionerTest, PlansAroundInstanceReportedInUse) {
  Node("a", {{0, "1g.5gb@0:free"}, {1, ""}});
  Change("nodes", "a", [](Json& node) {  // GPU 1 cannot serve: it is not reported
    MakeObject(node, "metadata", "annotations").erase("nos.nebuly.com/status-layout-1");
  });
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(Spec("a"), "7g.40gb@0");
  Annotate(
      "a", "partitioning-result",
      reconcile::WritePlanResult({"1", false, {{0, "7g.40gb@0", "InUse", "1g.5gb@0 is in use"}}}));
  Acknowledge("a", {{0, "1g.5gb@0:used"}});
  Pod("q", "3g.20gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "2");
  EXPECT_EQ(Spec("a"), "1g.5gb@0,3g.20gb@4") << "the 7g must not be requested any more";
}

TEST_F(PartitionerTest, PartialResultGivesPodsNewTimeToBindToCreatedSlices) {
  Node("a", {{0, ""}, {1, ""}});
  Pod("p", "7g.40gb");
  Pod("q", "7g.40gb");
  Run();
  ASSERT_EQ(Spec("a", 0) + Spec("a", 1), "7g.40gb@07g.40gb@0");
  Run(seconds(50));  // of the 60 s that a reservation holds
  Annotate(
      "a", "partitioning-result",
      reconcile::WritePlanResult({"1", false, {{1, "7g.40gb@0", "DeviceError", "it is broken"}}}));
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  Run(seconds(30));
  EXPECT_EQ(CountEvents("SliceReservationExpired"), 0) << Events();
  EXPECT_EQ(partitioner_->verdicts().at("ml/p").placed + partitioner_->verdicts().at("ml/q").placed,
            1);
}

TEST_F(PartitionerTest, NewPodOfSameNameHasNoBackOff) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  Run(seconds(70));
  ASSERT_GE(CountEvents("SliceReservationExpired"), 1);
  // A StatefulSet recreates its pod; both events arrive together.
  api_.Remove("pods", "ml/p");
  Pod("p", "3g.20gb");
  Change("pods", "ml/p", [](Json& pod) { MakeObject(pod, "metadata")["uid"] = "another"; });
  Run();
  EXPECT_EQ(PlanOf("a"), "2");
}

class PartitionerAwaitedTest : public PartitionerTest {
 protected:
  // GPU 0 has a terminating pod, whose place "large" is to get.
  void SetUp() override {
    Node("n", {{0, "3g.20gb@4:used"}, {1, "7g.40gb@0:used"}});
    Pod("victim", "3g.20gb");
    Bind("victim", "n");
    Pod("runs", "7g.40gb");
    Bind("runs", "n");
    Change("pods", "ml/victim", [&](Json& pod) {
      MakeObject(pod, "metadata")["deletionTimestamp"] = FormatTime(clock_.Now() + minutes(5));
    });
    Pod("large", "7g.40gb");
    Change("pods", "ml/large",
           [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n"; });
    clock_.Advance(seconds(1));
  }
};

TEST_F(PartitionerAwaitedTest, YoungerPodGetsNoSliceOfGpuThatNominatedPodWaitsFor) {
  Pod("small", "1g.5gb");
  Run(minutes(3));
  EXPECT_EQ(PlanOf("n"), "");
  api_.Remove("pods", "ml/victim");
  Annotate("n", "status-layout-0", "3g.20gb@4:free");
  Run();
  EXPECT_EQ(Spec("n"), "7g.40gb@0");
}

TEST_F(PartitionerAwaitedTest, YoungerPodGetsNoFreeSliceOfSuchGpu) {
  Annotate("n", "status-layout-0", "1g.5gb@0:free,3g.20gb@4:used");
  Node("other", {{0, ""}});
  Pod("small", "1g.5gb");
  Run(minutes(3));
  EXPECT_EQ(PlanOf("n"), "");
  EXPECT_EQ(Spec("other").rfind("1g.5gb@", 0), 0u) << Spec("other");
}

TEST_F(PartitionerAwaitedTest, OtherGpusOfTheNodeServeYoungerPods) {
  Node("n", {{0, "3g.20gb@4:used"}, {1, "7g.40gb@0:used"}, {2, "3g.20gb@4:used"}});
  Annotate("n", "status-holders-0", "3g.20gb@4=ml/victim");
  Annotate("n", "status-holders-2", "3g.20gb@4=ml/neighbour");
  Pod("neighbour", "3g.20gb");
  Bind("neighbour", "n");
  Pod("small", "1g.5gb");
  Run(minutes(3));
  EXPECT_EQ(Spec("n", 0), "");
  EXPECT_NE(Spec("n", 2), "");
}

TEST_F(PartitionerAwaitedTest, PodOfHigherPriorityDoesNotWait) {
  Pod("urgent", "4g.20gb");
  Change("pods", "ml/urgent", [](Json& pod) { MakeObject(pod, "spec")["priority"] = 10; });
  Run(minutes(3));
  EXPECT_NE(Spec("n"), "");
}

// The Go partitioner counted pods that were bound and not running yet as using nothing.
TEST_F(PartitionerTest, BoundPodHoldsItsSliceBeforeAgentReportsIt) {
  Node("a", {{0, "1g.5gb@0:free"}});
  Pod("starting", "1g.5gb");
  Bind("starting", "a");
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "");
}

}  // namespace
}  // namespace nos::controllers
