// Plans of the partitioner: for which pods, on which GPUs, and when.
#include <gmock/gmock.h>

#include "base/text.h"
#include "controllers/partitioner/fixture_test.h"
#include "scheduling/reasons.h"

namespace nos::controllers {
namespace {

using ::testing::Contains;

TEST_F(PartitionerTest, PartitionsGpuForPendingPod) {
  Node("n", {{0, ""}});
  Pod("p", "3g.20gb");
  Run();
  EXPECT_EQ(Spec("n").rfind("3g.20gb@", 0), 0u) << Spec("n");
  EXPECT_EQ(PlanOf("n"), "1");
  ASSERT_EQ(partitioner_->decisions().size(), 1u);
  const Decision& decision = partitioner_->decisions().front();
  EXPECT_EQ(decision.node, "n");
  EXPECT_EQ(decision.before, "");
  EXPECT_EQ(decision.after, Spec("n"));
  EXPECT_EQ(decision.pods, std::vector<std::string>{"ml/p"});
  EXPECT_EQ(CountEvents("Repartitioning"), 1);
  EXPECT_EQ(CountEvents("SlicePlanned"), 1);
  EXPECT_TRUE(partitioner_->verdicts().at("ml/p").placed);
}

TEST_F(PartitionerTest, DecisionNamesEachPodOnce) {
  Node("n", {{0, ""}});
  Pod("p", "1g.5gb", "2");
  Run();
  ASSERT_EQ(partitioner_->decisions().size(), 1u);
  EXPECT_EQ(partitioner_->decisions().front().pods, std::vector<std::string>{"ml/p"});
}

TEST_F(PartitionerTest, IgnoresPodsThatSlicesWouldNotHelp) {
  Node("n", {{0, ""}});
  Pod("untried", "1g.5gb");
  Change("pods", "ml/untried", [](Json& pod) { MakeObject(pod, "status").erase("conditions"); });
  Pod("daemon", "1g.5gb");
  Change("pods", "ml/daemon", [](Json& pod) {
    MakeObject(pod, "metadata")["ownerReferences"] =
        JsonArray{{{"apiVersion", "apps/v1"}, {"kind", "DaemonSet"}, {"name", "d"}, {"uid", "1"}}};
  });
  Pod("gated", "1g.5gb");
  Change("pods", "ml/gated", [](Json& pod) {
    MakeObject(pod, "spec")["schedulingGates"] = JsonArray{{{"name", "quota"}}};
  });
  Pod("cpu-only", "1g.5gb", "0");
  Run();
  EXPECT_EQ(PlanOf("n"), "");
}

// A scheduler has nominated a node on which another pod is terminating, whose slice may be the one
// that the pod needs. If the node has room for both, the pod does not wait: a tenant may have
// chosen how long its pod takes to end.
TEST_F(PartitionerTest, PlansForNominatedPodBesideTerminatingPodsIfThereIsRoom) {
  Node("n", {{0, "4g.20gb@0:used"}});
  Pod("victim", "4g.20gb");
  Bind("victim", "n");
  Change("pods", "ml/victim", [&](Json& pod) {
    MakeObject(pod, "metadata")["deletionTimestamp"] =
        FormatTime(clock_.Now() + std::chrono::seconds(30));
  });
  const auto nominate = [&](const std::string& name, const std::string& profile) {
    Pod(name, profile);
    Change("pods", "ml/" + name,
           [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n"; });
    Run();
  };
  nominate("without-room", "4g.20gb");
  EXPECT_EQ(PlanOf("n"), "");
  nominate("with-room", "3g.20gb");
  EXPECT_NE(PlanOf("n"), "");
}

// Two pods of a namespace are nominated to a node. The scheduler keeps the younger one from the GPU
// that is to serve the older one, so the younger one's slice must not be reserved there.
TEST_F(PartitionerTest, NominatedPodReservesNothingBeforeOlderOneIsServed) {
  Node("n", {{0, "2g.10gb@4:free"}, {1, "1g.5gb@0:used"}});
  Pod("runs", "1g.5gb");
  Bind("runs", "n");
  for (const auto& [name, profile] :
       {std::pair<std::string, std::string>("older", "7g.40gb"), {"younger", "2g.10gb"}}) {
    Pod(name, profile);
    Change("pods", "ml/" + name,
           [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n"; });
    clock_.Advance(std::chrono::seconds(1));
  }
  Run();
  EXPECT_EQ(Spec("n"), "7g.40gb@0");
}

TEST_F(PartitionerTest, ReportsProfileThatNoModelHas) {
  Node("n", {{0, ""}});
  Pod("known", "1g.6gb");  // a profile of the A30
  Pod("unknown", "9g.99gb");
  Run();
  EXPECT_EQ(Condition("known", "status"), "False");
  EXPECT_EQ(Condition("unknown", "status"), "False");
  EXPECT_EQ(Condition("known", "reason"), scheduling::codes::kNoGpuForProfile);
  EXPECT_EQ(Condition("unknown", "reason"), scheduling::codes::kNoModelHasProfile);
  EXPECT_EQ(PlanOf("n"), "");
}

TEST_F(PartitionerTest, PublishesReasonOfUnplaceablePodAsEventOnce) {
  Node("a", {{0, ""}});
  Pod("greedy", "1g.5gb", "1000");
  Run();
  const std::string text = Condition("greedy", "message");
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(Events(), "") << "it is early for a warning";
  Run(seconds(31));
  EXPECT_THAT(Split(Events(), '\n'),
              Contains("SliceNotPlanned: Failed to plan slices for Pod: " + text));
  const size_t events = api_.All("events").size();
  Node("b", {{0, ""}});
  Run(minutes(6));
  Restart();
  Run();
  EXPECT_EQ(api_.All("events").size(), events) << "published once, not with every plan\n"
                                               << Events();
}

TEST_F(PartitionerTest, OnePlanServesPodsOfOneBatch) {
  Node("n", {{0, ""}, {1, ""}});
  for (int i = 0; i < 7; ++i) {
    Pod("p" + std::to_string(i), "1g.5gb");
    Run(milliseconds(100));
  }
  EXPECT_EQ(PlanOf("n"), "");
  Run();
  EXPECT_EQ(PlanOf("n"), "1");
  EXPECT_EQ(Patches("n"), 1);
  EXPECT_EQ(partitioner_->decisions().size(), 1u);
}

TEST_F(PartitionerTest, StreamOfPodsDoesNotDelayPlanForEver) {
  Node("n", {{0, ""}, {1, ""}});
  for (int i = 0; i < 40; ++i) {
    Pod("p" + std::to_string(i), "1g.5gb");
    Run(milliseconds(100));
  }
  EXPECT_EQ(PlanOf("n"), "1");
}

// The Go partitioner wrote to every node on every plan.
TEST_F(PartitionerTest, WritesOnlyToChangedNodes) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(Patches("a") + Patches("b"), 1);
}

// The Go partitioner never looked again at a pod that a plan had not helped.
TEST_F(PartitionerTest, PlansAgainWhenCapacityBecomesFree) {
  Node("a", {{0, "7g.40gb@0:used"}});
  Pod("holder", "7g.40gb");
  Bind("holder", "a");
  Pod("p", "1g.5gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "");
  EXPECT_EQ(Condition("p", "status"), "False");
  EXPECT_NE(Condition("p", "reason"), "");
  EXPECT_NE(Condition("p", "message"), "");
  Run(seconds(31));
  const size_t writes = api_.writes.size();
  Run(minutes(5));
  EXPECT_EQ(api_.writes.size(), writes) << "published once";
  api_.Remove("pods", "ml/holder");
  Annotate("a", "status-layout-0", "7g.40gb@0:free");
  Run();
  EXPECT_EQ(Spec("a").rfind("1g.5gb@", 0), 0u) << Spec("a");
  EXPECT_EQ(Condition("p", "status"), "True");
}

// The Go partitioner used whole seconds as plan ids, so two plans could share one.
TEST_F(PartitionerTest, EachPlanOfANodeHasItsOwnId) {
  Node("a", {{0, ""}, {1, ""}});
  Annotate("a", "spec-partitioning-plan", "1700000000");  // the last id of the Go partitioner
  Annotate("a", "status-partitioning-plan", "1700000000");
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "1700000001");
  Acknowledge("a", {{0, Spec("a", 0).empty() ? "" : "7g.40gb@0:free"},
                    {1, Spec("a", 1).empty() ? "" : "7g.40gb@0:free"}});
  Pod("q", "7g.40gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "1700000002");
}

// An agent reports a GPU with MIG mode off as empty. NVIDIA's device plugin hands it out as a
// whole.
TEST_F(PartitionerTest, DoesNotPartitionGpuThatAPodMayHoldWhole) {
  Node("a", {{0, ""}, {1, "3g.40gb@0:free"}}, "NVIDIA-H100-80GB-HBM3");
  api_.Put({{"kind", "Pod"},
            {"metadata", {{"namespace", "ml"}, {"name", "whole"}}},
            {"spec",
             {{"nodeName", "a"},
              {"containers", JsonArray{{{"name", "main"},
                                        {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}}}}},
            {"status", {{"phase", "Running"}}}});
  Pod("p", "7g.80gb");
  Run();
  EXPECT_EQ(Spec("a", 0), "");
  EXPECT_EQ(Spec("a", 1), "7g.80gb@0") << "a GPU with instances is not held as a whole";
  Acknowledge("a", {{0, ""}, {1, "7g.80gb@0:free"}});
  Pod("q", "7g.80gb");
  Run();
  EXPECT_EQ(Condition("q", "status"), "False");
  api_.Remove("pods", "ml/whole");
  Run();
  EXPECT_EQ(Spec("a", 0), "7g.80gb@0");
}

TEST_F(PartitionerTest, KeepsBoundedNumberOfDecisions) {
  config_.remembered_decisions = 3;
  Restart();
  for (int i = 0; i < 6; ++i) {
    const std::string node = "n" + std::to_string(i);
    Node(node, {{0, ""}});
    Pod("p" + std::to_string(i), "7g.40gb");
    Run();
  }
  EXPECT_EQ(partitioner_->decisions().size(), 3u);
  EXPECT_EQ(partitioner_->decisions().back().sequence, 6u);
}

}  // namespace
}  // namespace nos::controllers
