#include "controllers/partitioner.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "controllers/runner.h"
#include "kube/testing/fake_api.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

using Layouts = std::map<int, std::string>;  // GPU -> "3g.20gb@4:used,..."

class PartitionerTest : public testing::Test {
 protected:
  PartitionerTest() { Restart(); }

  void Restart() {
    runner_.reset();
    partitioner_ = std::make_unique<Partitioner>(config_, framework_, gpu::Catalogue::Builtin());
    runner_ = std::make_unique<Runner>(*partitioner_, api_, RunnerOptions());
  }
  void Run(Duration time = seconds(5)) {
    const Time end = clock_.Now() + time;
    for (int i = 0; i < 3000; ++i) {
      if (runner_->Step(clock_)) continue;
      const auto due = runner_->NextDue();
      if (!due || *due > end) return clock_.AdvanceTo(end);
      clock_.AdvanceTo(std::max(*due, clock_.Now()));
    }
    ADD_FAILURE() << "the partitioner does not come to rest";
  }

  // A node of A100-40GB that its agent has reported.
  void Node(const std::string& name, const Layouts& status,
            const std::string& product = "NVIDIA-A100-SXM4-40GB") {
    JsonObject annotations;
    for (const auto& [gpu, layout] : status) {
      annotations["nos.nebuly.com/status-layout-" + std::to_string(gpu)] = layout;
    }
    api_.Put({{"kind", "Node"},
              {"metadata",
               {{"name", name},
                {"labels",
                 {{"nos.nebuly.com/gpu-partitioning", "mig"},
                  {"nvidia.com/gpu.product", product},
                  {"nvidia.com/gpu.count", std::to_string(status.size())}}},
                {"annotations", std::move(annotations)}}},
              {"status", {{"allocatable", {{"cpu", "96"}, {"pods", "110"}}}}}});
  }
  // As kube-scheduler leaves a pod that it could not place.
  void Pod(const std::string& name, const std::string& profile, const std::string& count = "1") {
    api_.Put(
        {{"kind", "Pod"},
         {"metadata",
          {{"namespace", "ml"},
           {"name", name},
           {"uid", "uid-" + name},
           {"creationTimestamp", FormatTime(clock_.Now())}}},
         {"spec",
          {{"containers",
            JsonArray{{{"name", "main"},
                       {"resources", {{"limits", {{"nvidia.com/mig-" + profile, count}}}}}}}}}},
         {"status",
          {{"phase", "Pending"},
           {"conditions",
            JsonArray{
                {{"type", "PodScheduled"}, {"status", "False"}, {"reason", "Unschedulable"}}}}}}});
  }
  void Change(const std::string& plural, const std::string& key,
              const std::function<void(Json&)>& edit) {
    Json object = *api_.Find(plural, key);
    edit(object);
    api_.Put(std::move(object));
  }
  void Bind(const std::string& name, const std::string& node) {
    Change("pods", "ml/" + name, [&](Json& pod) { MakeObject(pod, "spec")["nodeName"] = node; });
  }
  std::string Annotation(const std::string& node, const std::string& key) {
    return std::string(
        FindString(*api_.Find("nodes", node), "metadata", "annotations", "nos.nebuly.com/" + key));
  }
  void Annotate(const std::string& node, const std::string& key, const std::string& value) {
    Change("nodes", node, [&](Json& object) {
      MakeObject(object, "metadata", "annotations")["nos.nebuly.com/" + key] = value;
    });
  }
  std::string Spec(const std::string& node, int gpu = 0) {
    return Annotation(node, "spec-layout-" + std::to_string(gpu));
  }
  std::string PlanOf(const std::string& node) { return Annotation(node, "spec-partitioning-plan"); }
  // What a node's agent does when all goes well.
  void Acknowledge(const std::string& node, const Layouts& status) {
    for (const auto& [gpu, layout] : status) {
      Annotate(node, "status-layout-" + std::to_string(gpu), layout);
    }
    Annotate(node, "status-partitioning-plan", PlanOf(node));
  }
  std::string Condition(const std::string& pod, std::string_view field) {
    for (const Json& condition :
         api_.Find("pods", "ml/" + pod)->at("status").at("conditions").as_array()) {
      if (FindString(condition, "type") == kPartitionedCondition) {
        return std::string(FindString(condition, field));
      }
    }
    return "";
  }
  std::string Events() {
    std::string all;
    for (const Json& event : api_.All("events")) {
      all += std::string(FindString(event, "reason")) + ": " +
             std::string(FindString(event, "message")) + "\n";
    }
    return all;
  }
  int Patches(const std::string& node) {
    int count = 0;
    for (const auto& request : api_.writes) count += request.path == "/api/v1/nodes/" + node;
    return count;
  }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  scheduling::Framework framework_ = scheduling::Framework::Default();
  PartitionerConfig config_;
  std::unique_ptr<Partitioner> partitioner_;
  std::unique_ptr<Runner> runner_;
};

TEST_F(PartitionerTest, CutsAGpuForAPodThatWaits) {
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
  EXPECT_NE(Events().find("Repartitioning: plan 1: GPU 0: empty -> "), std::string::npos);
  EXPECT_NE(Events().find("SlicePlanned: n: 3g.20gb@"), std::string::npos) << Events();
  EXPECT_TRUE(partitioner_->verdicts().at("ml/p").placed);
}

TEST_F(PartitionerTest, AnEmptyGpuStaysEmptyUntilSomebodyAsks) {
  Node("n", {{0, ""}, {1, ""}});
  Run();
  EXPECT_EQ(PlanOf("n"), "");
  Pod("p", "1g.5gb");
  Run();
  EXPECT_EQ(Spec("n", 0).empty() + Spec("n", 1).empty(), 1) << "one GPU is enough";
}

TEST_F(PartitionerTest, LeavesPodsAloneThatSlicesWouldNotHelp) {
  Node("n", {{0, ""}});
  Pod("untried", "1g.5gb");
  Change("pods", "ml/untried", [](Json& pod) { MakeObject(pod, "status").erase("conditions"); });
  Pod("daemon", "1g.5gb");
  Change("pods", "ml/daemon", [](Json& pod) {
    MakeObject(pod, "metadata")["ownerReferences"] =
        JsonArray{{{"apiVersion", "apps/v1"}, {"kind", "DaemonSet"}, {"name", "d"}, {"uid", "1"}}};
  });
  Pod("nominated", "1g.5gb");
  Change("pods", "ml/nominated",
         [](Json& pod) { MakeObject(pod, "status")["nominatedNodeName"] = "n"; });
  Pod("gated", "1g.5gb");
  Change("pods", "ml/gated", [](Json& pod) {
    MakeObject(pod, "spec")["schedulingGates"] = JsonArray{{{"name", "quota"}}};
  });
  Pod("cpu-only", "1g.5gb", "0");
  Run();
  EXPECT_EQ(PlanOf("n"), "");
}

TEST_F(PartitionerTest, OnePlanServesPodsThatComeTogether) {
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

TEST_F(PartitionerTest, AStreamOfPodsDoesNotPutThePlanOffForEver) {
  Node("n", {{0, ""}, {1, ""}});
  for (int i = 0; i < 40; ++i) {
    Pod("p" + std::to_string(i), "1g.5gb");
    Run(milliseconds(100));
  }
  EXPECT_EQ(PlanOf("n"), "1");
}

// The Go partitioner wrote to every node on every plan (section 3.9).
TEST_F(PartitionerTest, WritesOnlyToNodesThatChange) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(Patches("a") + Patches("b"), 1);
}

// Defect A1: deleted nodes stayed in the state and stopped everything.
TEST_F(PartitionerTest, ADeletedNodeIsForgotten) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(PlanOf("a"), "1");
  api_.Remove("nodes", "a");
  Node("b", {{0, ""}});
  Run();
  EXPECT_EQ(Spec("b"), "7g.40gb@0") << "the promise went with the node";
}

// Defect A2: taking the label off was never noticed.
TEST_F(PartitionerTest, ANodeThatLeavesIsLeftAlone) {
  Node("a", {{0, ""}});
  Run();
  Change("nodes", "a", [](Json& node) {
    MakeObject(node, "metadata", "labels").erase("nos.nebuly.com/gpu-partitioning");
  });
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "");
}

// Defect A3: one bad node stopped planning for all.
TEST_F(PartitionerTest, ABadNodeHurtsOnlyItself) {
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

// Defect A4: one silent agent blocked planning for everybody, for ever.
TEST_F(PartitionerTest, ASilentNodeStopsOnlyItself) {
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
  EXPECT_NE(Events().find("PartitioningUnanswered"), std::string::npos);
  Node("c", {{0, ""}});
  Run();
  EXPECT_EQ(Spec("c"), "7g.40gb@0") << "p goes elsewhere";
}

TEST_F(PartitionerTest, ASilentNodeIsTriedAgainAfterAPause) {
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

// Defect A7: a pod that a plan did not help was never looked at again.
TEST_F(PartitionerTest, HelpsLaterWhenSomethingFalls) {
  Node("a", {{0, "7g.40gb@0:used"}});
  Pod("holder", "7g.40gb");
  Bind("holder", "a");
  Pod("p", "1g.5gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "");
  EXPECT_EQ(Condition("p", "status"), "False");
  EXPECT_NE(Condition("p", "reason"), "");
  EXPECT_NE(Condition("p", "message"), "");
  const size_t writes = api_.writes.size();
  Run(minutes(5));
  EXPECT_EQ(api_.writes.size(), writes) << "told once";
  api_.Remove("pods", "ml/holder");
  Annotate("a", "status-layout-0", "7g.40gb@0:free");
  Run();
  EXPECT_EQ(Spec("a").rfind("1g.5gb@", 0), 0u) << Spec("a");
  EXPECT_EQ(Condition("p", "status"), "True");
}

// Defect A8: pods that were bound but not running yet counted as using nothing.
TEST_F(PartitionerTest, ABoundPodHoldsItsSliceBeforeTheStatusSaysSo) {
  Node("a", {{0, "1g.5gb@0:free"}});
  Pod("starting", "1g.5gb");
  Bind("starting", "a");
  Pod("p", "7g.40gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "");
}

// Defect A11: a node that held devices but had no spec was never taken in.
TEST_F(PartitionerTest, ANodeWithInstancesAndNoSpecIsPlannedFor) {
  Node("a", {{0, "3g.20gb@4:used"}});
  Pod("p", "4g.20gb");
  Run();
  EXPECT_EQ(Spec("a"), "4g.20gb@0,3g.20gb@4");
}

TEST_F(PartitionerTest, AGpuThatNobodyReportedIsNotTouched) {
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

// Defect A12: plan ids were whole seconds, and two plans could share one.
TEST_F(PartitionerTest, EveryPlanOfANodeHasItsOwnId) {
  Node("a", {{0, ""}, {1, ""}});
  Annotate("a", "spec-partitioning-plan", "1700000000");  // the Go partitioner's last one
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

TEST_F(PartitionerTest, ANodeInFlightIsNotReplannedButServesItsPods) {
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

// Defect B10: a slice made for one pod could be taken away for another before it was bound.
TEST_F(PartitionerTest, PromisedSlicesAreNotCutUpForOthers) {
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

TEST_F(PartitionerTest, APodThatDoesNotTakeItsSliceLosesItForAWhile) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Acknowledge("a", {{0, "7g.40gb@0:free"}});
  Run();
  Pod("small", "1g.5gb");
  Run(seconds(70));
  EXPECT_NE(Events().find("SliceNotTaken"), std::string::npos);
  EXPECT_EQ(Spec("a").rfind("1g.5gb@", 0), 0u) << Spec("a");
}

TEST_F(PartitionerTest, AStolenSliceIsReplacedAtOnce) {
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

TEST_F(PartitionerTest, AFailedGpuRestsAndAnotherServes) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Annotate("a", "partitioning-result",
           WritePlanResult({"1", false, {{0, "7g.40gb@0", "DeviceError", "it is broken"}}}));
  Annotate("a", "status-partitioning-plan", "1");
  Run(seconds(30));
  EXPECT_EQ(partitioner_->decisions().back().note, "partial: GPU 0: it is broken");
  EXPECT_EQ(PlanOf("a"), "1");
  Node("b", {{0, ""}});
  Run();
  EXPECT_EQ(Spec("b"), "7g.40gb@0");
}

TEST_F(PartitionerTest, WhatWasInUseIsPlannedAround) {
  Node("a", {{0, "1g.5gb@0:free"}, {1, ""}});
  Change("nodes", "a", [](Json& node) {  // GPU 1 cannot serve: it is not reported
    MakeObject(node, "metadata", "annotations").erase("nos.nebuly.com/status-layout-1");
  });
  Pod("p", "7g.40gb");
  Run();
  ASSERT_EQ(Spec("a"), "7g.40gb@0");
  Annotate("a", "partitioning-result",
           WritePlanResult({"1", false, {{0, "7g.40gb@0", "InUse", "1g.5gb@0 is in use"}}}));
  Acknowledge("a", {{0, "1g.5gb@0:used"}});
  Pod("q", "3g.20gb");
  Run();
  EXPECT_EQ(PlanOf("a"), "2");
  EXPECT_EQ(Spec("a"), "1g.5gb@0,3g.20gb@4") << "and nobody goes on after the 7g";
}

TEST_F(PartitionerTest, AConflictIsReadAgainAndPlannedAgain) {
  Node("a", {{0, ""}});
  Pod("p", "7g.40gb");
  bool changed = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    if (request.method == "PATCH" && request.path == "/api/v1/nodes/a" && !changed) {
      changed = true;
      Annotate("a", "status-layout-0", "3g.20gb@0:used");  // somebody was faster
    }
    return std::optional<Result<kube::ApiResponse>>();
  };
  Run();
  EXPECT_TRUE(changed);
  EXPECT_EQ(PlanOf("a"), "") << "the plan was made for what is not there any more";
}

TEST_F(PartitionerTest, ALostAnswerDoesNotPlanTwice) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  bool lost = false;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method == "PATCH" && request.path.find("/nodes/") != std::string::npos && !lost) {
      lost = true;
      (void)api_.Do(request);  // it takes place all the same
      answer = Result<kube::ApiResponse>(Status(Code::kDeadline, "no answer"));
    }
    return answer;
  };
  Run(seconds(30));
  EXPECT_EQ(PlanOf("a").empty() + PlanOf("b").empty(), 1);
}

TEST_F(PartitionerTest, ARestartInTheMiddleGoesOn) {
  Node("a", {{0, ""}});
  Node("b", {{0, ""}});
  Pod("p", "7g.40gb");
  Run();
  Restart();
  Run(seconds(30));
  EXPECT_EQ(PlanOf("a").empty() + PlanOf("b").empty(), 1) << "the plan under way serves it";
}

TEST_F(PartitionerTest, OnePodThatCannotBeServedHoldsNobodyUp) {
  Node("a", {{0, ""}});
  Pod("impossible", "7g.40gb", "3");
  Pod("unknown", "5g.55gb");
  Pod("p", "2g.10gb");
  Run();
  EXPECT_EQ(Spec("a").rfind("2g.10gb@", 0), 0u);
  EXPECT_EQ(Condition("impossible", "status"), "False");
}

TEST_F(PartitionerTest, DecisionsAreBounded) {
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
