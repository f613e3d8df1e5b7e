#include "controllers/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kube/testing/fake_api.h"
#include "kube/testing/refuse.h"
#include "reconcile/runner.h"
#include "scheduling/framework.h"

namespace nos::controllers {
namespace {

using std::chrono::seconds;

class SchedulerTest : public testing::Test {
 protected:
  SchedulerTest() { Restart(); }

  void Restart() {
    runner_.reset();
    scheduler_ = std::make_unique<Scheduler>(
        SchedulerConfig(), std::vector<SchedulerProfile>{{"default-scheduler", &framework_}},
        gpu::Catalogue::Builtin(), SchedulerThreads(), &metrics_);
    runner_ = std::make_unique<reconcile::Runner>(*scheduler_, api_, reconcile::RunnerOptions());
  }
  void Run() {
    for (int i = 0; i < 200; ++i) {
      if (runner_->Step(clock_)) continue;
      const auto due = runner_->NextDue();
      if (!due || *due > clock_.Now() + seconds(9)) return;
      clock_.AdvanceTo(*due);
    }
    ADD_FAILURE() << "does not come to rest";
  }
  void Node(const std::string& name, const std::string& cpu, int slices = 0) {
    api_.Put(
        {{"kind", "Node"},
         {"metadata", {{"name", name}}},
         {"status",
          {{"allocatable",
            {{"cpu", cpu}, {"pods", "110"}, {"nvidia.com/mig-1g.5gb", std::to_string(slices)}}}}}});
  }
  void Pod(const std::string& name, const std::string& resource, const std::string& amount,
           int priority = 0, const std::string& created = "2026-01-01T00:00:00Z") {
    api_.Put({{"kind", "Pod"},
              {"metadata", {{"namespace", "ml"}, {"name", name}, {"creationTimestamp", created}}},
              {"spec",
               {{"priority", priority},
                {"schedulerName", "default-scheduler"},
                {"containers", JsonArray{{{"name", "main"},
                                          {"resources", {{"requests", {{resource, amount}}}}}}}}}},
              {"status", {{"phase", "Pending"}}}});
  }
  std::string NodeOf(const std::string& name) {
    return std::string(FindString(*api_.Find("pods", "ml/" + name), "spec", "nodeName"));
  }
  std::string Why(const std::string& name) {
    const Json* conditions = nos::Find(*api_.Find("pods", "ml/" + name), "status", "conditions");
    if (conditions == nullptr) return "";
    const Json& condition = conditions->get_array().at(0);
    EXPECT_EQ(FindString(condition, "type"), "PodScheduled");
    EXPECT_EQ(FindString(condition, "reason"), "Unschedulable");
    return std::string(FindString(condition, "message"));
  }
  int Binds() {
    return static_cast<int>(std::count_if(
        api_.writes.begin(), api_.writes.end(),
        [](const auto& request) { return request.path.find("/binding") != std::string::npos; }));
  }

  ManualClock clock_{Time(seconds(1'800'000'000))};
  kube::FakeApi api_;
  Metrics metrics_;
  scheduling::Framework framework_ = scheduling::Framework::Default();
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<reconcile::Runner> runner_;
};

TEST_F(SchedulerTest, BindsByPriorityThenAge) {
  Node("n", "2");
  Pod("young", "cpu", "1", 0, "2026-01-02T00:00:00Z");
  Pod("old", "cpu", "1", 0, "2026-01-01T00:00:00Z");
  Pod("urgent", "cpu", "1", 9, "2026-01-03T00:00:00Z");
  Run();
  EXPECT_EQ(NodeOf("urgent"), "n");
  EXPECT_EQ(NodeOf("old"), "n");
  EXPECT_EQ(NodeOf("young"), "");
}

TEST_F(SchedulerTest, ReportsUnschedulableInKubeSchedulersWording) {
  Node("a", "1");
  Node("b", "1");
  Pod("p", "nvidia.com/mig-1g.5gb", "1");
  Run();
  EXPECT_EQ(Why("p"),
            "0/2 nodes are available: 2 Insufficient nvidia.com/mig-1g.5gb. Remedy: add a node "
            "that the pod may use, with GPUs for 1g.5gb such as A100-40GB.");
  clock_.Advance(seconds(31));
  Run();
  const size_t writes = api_.writes.size();
  clock_.Advance(seconds(60));
  Run();
  EXPECT_EQ(api_.writes.size(), writes) << "no polling, no repetition";
}

TEST_F(SchedulerTest, RetriesPodAfterHelpfulEvent) {
  Node("a", "1");
  Pod("p", "nvidia.com/mig-1g.5gb", "1");
  Run();
  Node("a", "1", 1);
  Run();
  EXPECT_EQ(NodeOf("p"), "a");
  Pod("q", "nvidia.com/mig-1g.5gb", "1");
  Run();
  EXPECT_EQ(NodeOf("q"), "");
  api_.Remove("pods", "ml/p");
  Run();
  EXPECT_EQ(NodeOf("q"), "a");
}

TEST_F(SchedulerTest, ExportsKubeSchedulerMetrics) {
  Node("a", "1");
  Pod("p", "cpu", "1", 9);
  Pod("q", "cpu", "1");
  Run();
  const std::string text = metrics_.Text();
  const auto expect = [&](const std::string& line) {
    EXPECT_NE(text.find("\n" + line), std::string::npos) << line << "\n" << text;
  };
  const std::string attempts = "scheduler_schedule_attempts_total{profile=\"default-scheduler\",";
  expect(attempts + "result=\"scheduled\"} 1");
  expect(attempts + "result=\"unschedulable\"} 1");
  expect("scheduler_pending_pods{queue=\"unschedulable\"} 1");
  expect("scheduler_pending_pods{queue=\"active\"} 0");
  expect("scheduler_pod_scheduling_sli_duration_seconds_count{attempts=\"1\"} 1");
  expect("scheduler_scheduling_attempt_duration_seconds_count{profile=\"default-scheduler\",");
}

// The metric must drop to zero: another replica may lead and report the pods.
TEST_F(SchedulerTest, ZeroesPendingPodsMetricOnShutdown) {
  Pod("p", "cpu", "1");
  Run();
  const std::string pending = "scheduler_pending_pods{queue=\"unschedulable\"} ";
  ASSERT_NE(metrics_.Text().find(pending + "1"), std::string::npos);
  runner_.reset();
  scheduler_.reset();
  EXPECT_NE(metrics_.Text().find(pending + "0"), std::string::npos);
}

TEST_F(SchedulerTest, RetiredSchedulerPlacesNoMorePods) {
  Node("a", "8");
  Pod("p", "cpu", "1");
  Run();
  scheduler_->Retire();
  Pod("q", "cpu", "1");
  Run();
  EXPECT_EQ(NodeOf("p"), "a");
  EXPECT_EQ(NodeOf("q"), "");
  EXPECT_TRUE(scheduler_->IsQuiet());
  Restart();
  Run();
  EXPECT_EQ(NodeOf("q"), "a");
}

TEST_F(SchedulerTest, LeavesGatedAndForeignPodsAlone) {
  Node("a", "8");
  Pod("gated", "cpu", "1");
  Json gated = *api_.Find("pods", "ml/gated");
  MakeObject(gated, "spec")["schedulingGates"] = JsonArray{{{"name", "quota"}}};
  api_.Put(gated);
  Pod("foreign", "cpu", "1");
  Json foreign = *api_.Find("pods", "ml/foreign");
  MakeObject(foreign, "spec")["schedulerName"] = "volcano";
  api_.Put(foreign);
  Run();
  EXPECT_EQ(Binds(), 0);
  MakeObject(gated, "spec").erase("schedulingGates");
  api_.Put(gated);
  Run();
  EXPECT_EQ(NodeOf("gated"), "a");
}

// The failure itself must requeue the pod, because nothing else changes in the cluster.
TEST_F(SchedulerTest, RetriesRefusedBindingWithGrowingBackOff) {
  Node("a", "1");
  Pod("p", "cpu", "1");
  std::vector<Time> tries;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.path.find("/binding") != std::string::npos && tries.size() < 4) {
      tries.push_back(clock_.Now());
      answer = Result<kube::ApiResponse>(Status(Code::kConflict, "not now"));
    }
    return answer;
  };
  Run();
  ASSERT_EQ(tries.size(), 4u);
  EXPECT_GT(tries[1], tries[0]);
  EXPECT_EQ(tries[2] - tries[1], 2 * (tries[1] - tries[0]));
  EXPECT_EQ(tries[3] - tries[2], 2 * (tries[2] - tries[1]));
  EXPECT_EQ(NodeOf("p"), "a");
}

TEST_F(SchedulerTest, BindsPodOnceAcrossRestart) {
  Node("a", "1");
  Pod("p", "cpu", "1");
  Pod("q", "cpu", "1", 0, "2026-01-02T00:00:00Z");
  Run();
  Restart();
  Run();
  EXPECT_EQ(NodeOf("p"), "a");
  EXPECT_EQ(NodeOf("q"), "");
  EXPECT_EQ(Binds(), 1);
}

// While the victims terminate, no further pod is evicted for the preemptor, and their capacity is
// kept for it.
TEST_F(SchedulerTest, KeepsFreedCapacityForPreemptor) {
  Node("a", "1");
  Node("b", "1");
  Pod("low-a", "cpu", "1", 1);
  Pod("low-b", "cpu", "1", 1);
  Run();
  std::vector<std::string> deleted;
  api_.intercept = [&](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method == "DELETE") {
      deleted.push_back(request.path);
      answer = Result<kube::ApiResponse>(kube::ApiResponse{200, JsonObject{}, {}, {}});
    }
    return answer;
  };
  Pod("high", "cpu", "1", 9);
  Run();
  ASSERT_EQ(deleted.size(), 1u);
  EXPECT_TRUE(deleted[0].ends_with("/low-a")) << deleted[0];
  Pod("other", "cpu", "1", 5);
  clock_.Advance(std::chrono::minutes(6));  // all pods are tried again
  Run();
  EXPECT_EQ(deleted.size(), 2u) << "other takes the other node's place, and high no second one";
  api_.intercept = nullptr;
  api_.Remove("pods", "ml/low-a");
  Run();
  EXPECT_EQ(NodeOf("high"), "a");
  EXPECT_EQ(NodeOf("other"), "");
  api_.Remove("pods", "ml/low-b");
  Run();
  EXPECT_EQ(NodeOf("other"), "b");
}

// The node has become too small for the preemptor: other pods get the capacity.
TEST_F(SchedulerTest, DropsNominationThatNoLongerFits) {
  Node("a", "1");
  Pod("low", "cpu", "1", 1);
  Run();
  Refuse(api_, "DELETE", "", kube::ApiResponse{200, JsonObject{}, {}, {}});
  Pod("high", "cpu", "1", 9);
  Run();
  EXPECT_EQ(FindString(*api_.Find("pods", "ml/high"), "status", "nominatedNodeName"), "a");
  Pod("other", "cpu", "500m", 2);
  Run();
  Node("a", "500m");
  api_.Remove("pods", "ml/low");
  Run();
  EXPECT_EQ(FindString(*api_.Find("pods", "ml/high"), "status", "nominatedNodeName"), "");
  EXPECT_EQ(NodeOf("other"), "a");
}

TEST_F(SchedulerTest, RetriesFailedEviction) {
  Node("a", "1");
  Pod("low", "cpu", "1", 1);
  Run();
  Refuse(api_, "DELETE", "", Status(Code::kUnavailable, "busy"), 1);
  Pod("high", "cpu", "1", 9);
  Run();
  clock_.Advance(std::chrono::minutes(6));
  Run();
  EXPECT_EQ(NodeOf("high"), "a");
}

}  // namespace
}  // namespace nos::controllers
