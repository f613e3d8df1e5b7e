// Failing nodes, agents and writes affect only themselves, and everything recovers.
#include "controllers/partitioner/fixture_test.h"
#include "kube/testing/refuse.h"
#include "reconcile/testing/slow_watches.h"

#include <iostream>

namespace nos::controllers {
namespace {

// The Go partitioner kept deleted nodes in its state and then stopped.
TEST_F(PartitionerTest, ForgetsDeletedNodeAndItsReservations) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(PlanOf("a"), "1");
  api_.Remove("nodes", "a");
  Node("b", {{0, ""}});
  Run();
  EXPECT_EQ(Spec("b"), "7g.40gb@0") << "the reservation was dropped with the node";
}

// In the Go partitioner one bad node stopped planning for all.
TEST_F(PartitionerTest, BadNodesDoNotStopPlanning) {
  Node("a", {{0, ""}}, "NVIDIA-Quantum-9000");
  Node("b", {{0, "9g.90gb@0:free"}});
  Node("c", {});
  Change("nodes", "c", [](Json& node) {
    MakeObject(node, "metadata", "labels").erase("nvidia.com/gpu.product");
  });
  Node("d", {{0, "nonsense"}, {1, ""}});
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(Spec("d", 1), "7g.40gb@0");
  EXPECT_EQ(PlanOf("a") + PlanOf("b") + PlanOf("c"), "");
}

// In the Go partitioner one silent agent blocked all planning for ever.
TEST_F(PartitionerTest, SilentAgentDoesNotBlockOtherNodes) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(PlanOf("a"), "1");
  Node("b", {{0, ""}});
  Pod("q", "7g.40gb");
  Run();
  EXPECT_EQ(Spec("b"), "7g.40gb@0") << "q does not wait for a";
  Acknowledge("b", {{0, "7g.40gb@0:free"}});
  Bind("q", "b");
  Acknowledge("b", {{0, "7g.40gb@0:used"}});
  Run(seconds(70));
  EXPECT_EQ(partitioner_->decisions().back().note, "no answer for 60s");
  EXPECT_GE(CountEvents("PlanNotAcknowledged"), 1);
  Node("c", {{0, ""}});
  Run();
  EXPECT_EQ(Spec("c"), "7g.40gb@0") << "p is planned on another node";
}

TEST_F(PartitionerTest, RetriesSilentNodeAfterPause) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Run(minutes(2) + seconds(30));
  EXPECT_EQ(PlanOf("a"), "2");
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  Run();
  EXPECT_EQ(partitioner_->decisions().back().note, "applied");
  EXPECT_EQ(PlanOf("a"), "2");
}

class PartitionerBrokenGpuTest : public PartitionerTest {
 protected:
  // The agent of node a cannot carry out the plan for pod p.
  PartitionerBrokenGpuTest() {
    Node("a", {{0, ""}});
    Pod("p", "7g.40gb");
    Run();
    const gpu::Obstacle obstacle{0, "7g.40gb@0", "DeviceError", "it is broken"};
    Annotate("a", "partitioning-result", reconcile::WritePlanResult({"1", false, {obstacle}}));
    Annotate("a", "status-partitioning-plan", "1");
  }
};

TEST_F(PartitionerBrokenGpuTest, BacksOffAndAnotherGpuIsUsed) {
  Run(seconds(30));
  EXPECT_EQ(partitioner_->decisions().back().note, "partial: GPU 0: it is broken");
  EXPECT_EQ(PlanOf("a"), "1");
  Node("b", {{0, ""}});
  Run();
  EXPECT_EQ(Spec("b"), "7g.40gb@0");
}

TEST_F(PartitionerBrokenGpuTest, LatePartitioningEndsBackOff) {
  Run();
  Annotate("a", "status-layout-0", "7g.40gb@0:free");
  Annotate("a", "partitioning-result", reconcile::WritePlanResult({"1", true, {}}));
  api_.Remove("pods", "ml/p");
  Pod("q", "3g.20gb");
  Run();
  EXPECT_EQ(Spec("a"), "3g.20gb@4");
}

TEST_F(PartitionerTest, PlansAgainAfterConflict) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  bool changed = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    if (request.method == "PATCH" && request.path == "/api/v1/nodes/a" && !changed) {
      changed = true;
      Annotate("a", "status-layout-0", "3g.20gb@0:used");  // another client was faster
    }
    return std::optional<Result<kube::ApiResponse>>();
  };
  Run();
  EXPECT_TRUE(changed);
  EXPECT_EQ(PlanOf("a"), "") << "the plan was made for an old layout";
}

TEST_F(PartitionerTest, RetriesPlanThatWasRefusedOnce) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  // No cache changes, so only time wakes the partitioner.
  const auto refused = Refuse(api_, "PATCH", "/nodes/a", Status(Code::kUnavailable, "busy"), 1);
  Run(seconds(10));
  EXPECT_EQ(*refused, 1);
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
}

TEST_F(PartitionerTest, ReservesNothingOfRefusedPlan) {
  Node("a", {{0, ""}, {1, ""}});
  Pod("a-low", "7g.40gb");
  Pod("z-high", "7g.40gb");
  Change("pods", "ml/z-high", [](Json& pod) { MakeObject(pod, "spec")["priority"] = 100; });
  bool changed = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    if (request.method == "PATCH" && request.path == "/api/v1/nodes/a" && !changed) {
      changed = true;  // another client was faster and left one slice
      Annotate("a", "status-layout-0", "7g.40gb@0:free");
      Annotate("a", "status-layout-1", "7g.40gb@0:used");
    }
    return std::optional<Result<kube::ApiResponse>>();
  };
  Run();
  EXPECT_TRUE(changed);
  EXPECT_TRUE(partitioner_->verdicts().at("ml/z-high").placed);
  EXPECT_FALSE(partitioner_->verdicts().at("ml/a-low").placed);
  EXPECT_EQ(CountEvents("SlicePlanned"), 0) << Events();
}

TEST_F(PartitionerTest, DoesNotPlanTwiceAfterLostAnswer) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  bool lost = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method == "PATCH" && request.path.find("/nodes/") != std::string::npos && !lost) {
      lost = true;
      (void)api_.Do(request);  // the write takes place nevertheless
      answer = Result<kube::ApiResponse>(Status(Code::kDeadline, "no answer"));
    }
    return answer;
  };
  Run(seconds(30));
  EXPECT_EQ(PlanOf("a").empty() + PlanOf("b").empty(), 1);
}

TEST_F(PartitionerTest, UsesItsOwnWritesWhileNodeWatchLags) {
  Node("a", {{0, ""}, {1, ""}});
  reconcile::testing::SlowWatches slow(api_);
  runner_ = std::make_unique<reconcile::Runner>(*partitioner_, slow, reconcile::RunnerOptions());
  Run();
  slow.nodes_silent = true;
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(PlanOf("a"), "1");
  Pod("q", "7g.40gb");
  Run();
  EXPECT_EQ(Patches("a"), 1) << "a plan is in flight; one based on the old node would be refused";
  slow.nodes_silent = false;
  Acknowledge("a", {{0, Spec("a", 0).empty() ? "" : "7g.40gb@0:free"},
                    {1, Spec("a", 1).empty() ? "" : "7g.40gb@0:free"}});
  Run();
  EXPECT_EQ(PlanOf("a"), "2") << "the watch delivers the writes of others";
}

TEST_F(PartitionerTest, RestartContinuesPlanInFlight) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Restart();
  Run(seconds(30));
  EXPECT_EQ(PlanOf("a").empty() + PlanOf("b").empty(), 1) << "the plan in flight serves it";
}

TEST_F(PartitionerTest, DoesNotPartitionUnreportedGpu) {
  Node("a", {{0, ""}, {1, ""}});
  Change("nodes", "a", [](Json& node) {
    MakeObject(node, "metadata", "annotations").erase("nos.nebuly.com/status-layout-0");
  });
  Pod("p", "7g.40gb");
  Pod("q", "7g.40gb");
  Run();
  EXPECT_EQ(Spec("a", 0), "");
  EXPECT_EQ(Spec("a", 1), "7g.40gb@0");
}

TEST_F(PartitionerTest, SlowWritesDoNotDelayNextPlan) {
  for (int i = 0; i < 500; ++i) {
    Node("n" + std::to_string(i), {{0, ""}});
    Pod("p" + std::to_string(i), "7g.40gb");
  }
  api_.intercept = [&](const kube::ApiRequest& request) {
    if (request.method != "GET") clock_.Advance(milliseconds(20));  // 50 per second
    return std::optional<Result<kube::ApiResponse>>();
  };
  Run(seconds(40));
  ASSERT_EQ(PlanOf("n499"), "1");
  Node("z", {{0, ""}});
  Pod("late", "7g.40gb");
  const Time came = clock_.Now();
  while (PlanOf("z").empty() && clock_.Now() - came < minutes(30)) Run(seconds(1));
  EXPECT_LT(ToSeconds(clock_.Now() - came), 10);
}

TEST_F(PartitionerTest, ConflictsOnSomeNodesDoNotAffectOthers) {
  for (int i = 0; i < 10; ++i) {
    Node("n" + std::to_string(i), {{0, ""}});
    Pod("p" + std::to_string(i), "7g.40gb");
  }
  int left = 40, seen = 0;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method == "PATCH" && request.path.starts_with("/api/v1/nodes/") &&
        ++seen % 2 == 0 && left-- > 0) {
      answer = Status(Code::kConflict, "no");
    }
    return answer;
  };
  Run(seconds(30));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Spec("n" + std::to_string(i)), "7g.40gb@0") << i;
  EXPECT_EQ(partitioner_->decisions().size(), 10u);
}

// A kubelet's credentials allow it to annotate its own node, whatever labels the node has.
TEST_F(PartitionerTest, BoundsTextThatNodesWriteIntoPlanResults) {
  for (const char* name : {"a", "stranger"}) Node(name, {{0, ""}});
  Change("nodes", "stranger", [](Json& node) {
    MakeObject(node, "metadata", "labels").erase("nos.nebuly.com/gpu-partitioning");
  });
  const std::string book(200'000, 'x');
  for (int plan = 1; plan <= 50; ++plan) {
    const std::string id = std::to_string(plan);
    const std::string result =
        reconcile::WritePlanResult({id, false, std::vector<gpu::Obstacle>(9, {0, "", "", book})});
    for (const char* name : {"a", "stranger"}) {
      Annotate(name, "spec-partitioning-plan", id);
      Annotate(name, "status-partitioning-plan", id);
      Annotate(name, "partitioning-result", result);
      Annotate(name, "spec-layout-99", book);
    }
    Run(seconds(1));
  }
  EXPECT_GE(partitioner_->decisions().size(), 50u);
  for (const Decision& decision : partitioner_->decisions()) {
    EXPECT_EQ(decision.node, "a") << decision.note;
    EXPECT_LE(decision.note.size() + decision.plan_id.size(), 1100u);
  }
}

// Node annotations are quoted in the conditions of every pending pod.
TEST_F(PartitionerTest, BoundsNodeTextInPodConditions) {
  for (int i = 0; i < 20; ++i) {
    Node("n" + std::to_string(i), {{0, std::string(200'000, static_cast<char>('a' + i))}});
  }
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(Condition("p", "reason"), "GpuProblem");
  EXPECT_LT(Condition("p", "message").size(), 2000u);
}

class ARefusingNodeTest : public PartitionerTest {
 protected:
  ARefusingNodeTest() {
    Node("a", {{0, ""}});
    Node("b", {{0, ""}});
  }
  void RefusePlans(const std::string& node, Code code, int times = 1'000'000) {
    Refuse(api_, "PATCH", "/nodes/" + node, Status(code, "a webhook says no"), times);
  }
};

TEST_F(ARefusingNodeTest, DoesNotAffectOtherNode) {
  for (const auto& [refusing, other] : {std::pair{"a", "b"}, {"b", "a"}}) {
    for (const char* name : {"a", "b"}) Node(name, {{0, ""}});
    Restart();
    RefusePlans(refusing, Code::kPermission);
    Pod("p", "7g.40gb");
    Run();
    EXPECT_EQ(Spec(other), "7g.40gb@0");
    api_.Remove("pods", "ml/p");
  }
}

TEST_F(ARefusingNodeTest, IsRetriedWithGrowingPauses) {
  api_.Remove("nodes", "b");
  RefusePlans("a", Code::kPermission);
  Pod("p", "7g.40gb");
  Run(minutes(60));
  EXPECT_GT(Patches("a"), 10);
  EXPECT_LT(Patches("a"), 20);
  EXPECT_EQ(api_.All("events").size(), 2u) << Events();
  EXPECT_GE(CountEvents("PlanRefused"), 1) << Events();
  api_.intercept = nullptr;
  Run(minutes(11));
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
}

TEST_F(ARefusingNodeTest, IsRetriedSoonerIfApiServerWasBusy) {
  api_.Remove("nodes", "b");
  RefusePlans("a", Code::kUnavailable);
  Pod("p", "7g.40gb");
  Run(minutes(60));
  api_.intercept = nullptr;
  Run(seconds(31));
  EXPECT_EQ(Spec("a"), "7g.40gb@0");
}

TEST_F(ARefusingNodeTest, BacksOffAfterRepeatedConflicts) {
  RefusePlans("a", Code::kConflict);
  Pod("p", "7g.40gb");
  Pod("q", "7g.40gb");
  Run(minutes(10));
  EXPECT_EQ(Spec("b"), "7g.40gb@0");
  EXPECT_LT(Patches("a"), 70);
}

TEST_F(ARefusingNodeTest, BackOffStartsOverAfterAcceptedPlan) {
  api_.Remove("nodes", "b");
  RefusePlans("a", Code::kConflict, 2);  // more conflicts in a row would cause a back-off
  Pod("p", "7g.40gb");
  Run(seconds(3));
  ASSERT_EQ(PlanOf("a"), "1");
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  api_.Remove("pods", "ml/p");
  RefusePlans("a", Code::kConflict, 2);
  Pod("q", "1g.5gb");
  Run(seconds(3));
  EXPECT_EQ(PlanOf("a"), "2");
}

TEST_F(ARefusingNodeTest, DoesNotDelayReasonsOfPods) {
  RefusePlans("a", Code::kPermission);
  Pod("p", "7g.40gb");
  Run(seconds(20));
  Pod("q", "7g.40gb");
  Run(seconds(20));
  EXPECT_EQ(Spec("b"), "7g.40gb@0");
  EXPECT_EQ(Condition("p", "status") + Condition("q", "status"), "False") << "one of them waits";
}

TEST_F(PartitionerTest, RetriesConditionThatCouldNotBeWritten) {
  Node("a", {{0, "7g.40gb@0:used"}});
  Pod("p", "7g.40gb");
  clock_.Advance(minutes(60));  // the pod is starving already, so no further plan is made
  Refuse(api_, "", "/pods/p/status", Status(Code::kUnavailable, "busy"), 3);
  Run(seconds(10));
  EXPECT_EQ(Condition("p", "status"), "False");
  EXPECT_EQ(api_.All("events").size(), 1u) << Events();
}

// A webhook for nodes is down. Its error contains the port of each attempt.
TEST_F(PartitionerTest, PublishesRefusalsWithVaryingTextRarely) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  int attempts = 0;
  Code code = Code::kUnavailable;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method == "PATCH" && request.path == "/api/v1/nodes/a") {
      answer = Status(
          code, "failed calling webhook: read tcp 10.0.0.1:" + std::to_string(40000 + ++attempts));
    }
    return answer;
  };
  const auto refusals = [&] { return CountEvents("PlanRefused"); };
  Run(minutes(4));
  EXPECT_GT(attempts, 5);
  EXPECT_EQ(refusals(), 1);
  code = Code::kPermission;
  Run(minutes(1) - seconds(1));
  EXPECT_EQ(refusals(), 2) << "this is another one";
  for (int minute = 5; minute < 60; ++minute) Run(minutes(1));
  EXPECT_LE(refusals(), 13) << attempts;
  EXPECT_GE(refusals(), 5) << "it is repeated now and then";
}

TEST_F(PartitionerTest, PublishingReasonsDoesNotDelayPlanning) {
  Node("a", {{0, "7g.40gb@0:used"}});
  for (int i = 0; i < 2000; ++i) Pod("hopeless" + std::to_string(i), "7g.40gb");
  api_.intercept = [&](const kube::ApiRequest& request) {
    if (request.method != "GET") clock_.Advance(milliseconds(10));  // 100 per second
    return std::optional<Result<kube::ApiResponse>>();
  };
  const auto step = [&] {
    if (!runner_->Step(clock_)) clock_.Advance(milliseconds(10));
  };
  while (api_.writes.empty()) step();  // the first conditions are being written
  Node("z", {{0, ""}});
  Pod("late", "1g.5gb");
  const size_t before = api_.writes.size();
  while (PlanOf("z").empty() && api_.writes.size() < 4000) step();
  EXPECT_LT(api_.writes.size() - before, 200U);
  while (api_.writes.size() < 4000) step();
  EXPECT_EQ(Condition("hopeless1999", "status"), "False") << "all conditions are written";
}

}  // namespace
}  // namespace nos::controllers
