#include <gmock/gmock.h>

#include "agent/conditions.h"
#include "agent/loop/fixture_test.h"
#include "reconcile/testing/event_reasons.h"

namespace nos::agent {
namespace {

using reconcile::testing::EventReasons;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST_F(AgentTest, DoesNotPartitionBrokenGpuAndOffersItsDevicesAsUnhealthy) {
  ASSERT_TRUE(gpus_.Place(0, "3g.20gb", 4).ok());
  ASSERT_TRUE(gpus_.Place(1, "3g.20gb", 4).ok());
  health_.Add({device::HealthCondition::Kind::kXid, 0, {}, 79, "fell off the bus; reset it"});
  Run();
  ASSERT_EQ(kubelet_.offer().size(), 2u);
  const auto broken = gpus_.ListInstances(0)->front().uuid;
  for (const auto& device : kubelet_.offer()) {
    EXPECT_EQ(device.healthy, device.device_id != broken);
  }
  EXPECT_EQ(Annotation("status-layout-0"), "") << "no plan may use it";
  EXPECT_EQ(Annotation("status-layout-1"), "3g.20gb@4:free");
  EXPECT_EQ(NodeCondition(), "False Xid79 GPU 0: fell off the bus; reset it");
  EXPECT_THAT(EventReasons(api_), Contains("Xid79 gpu-1"));
  EXPECT_NE(metrics_.Text().find(R"(nos_agent_gpu_conditions{gpu="0",reason="Xid79"} 1)"),
            std::string::npos);

  Apply("8", {{0, "7g.40gb@0"}, {1, "7g.40gb@0"}}, seconds(30));
  EXPECT_EQ(gpus_.ListInstances(0)->front().profile, "3g.20gb")
      << "a broken GPU is not repartitioned";
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "8") << "the plan has ended";
  EXPECT_NE(Annotation("partitioning-result").find("GpuUnhealthy"), std::string::npos);

  health_.ClearGpu(0);
  Run();
  EXPECT_EQ(NodeCondition(), "True Healthy ");
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

// For example because the annotations are too large.
TEST_F(AgentTest, ReportsHealthAlthoughStatusIsRefused) {
  health_.Add({device::HealthCondition::Kind::kXid, 0, {}, 79, "fell off the bus; reset it"});
  api_.intercept = [](const kube::ApiRequest& request) {
    std::optional<Result<kube::ApiResponse>> answer;
    if (request.method != "PATCH" || !request.path.ends_with(std::string("/nodes/") + kNode)) {
      return answer;
    }
    answer = Result<kube::ApiResponse>(kube::ApiResponse{422, JsonObject{}, {}, {}});
    return answer;
  };
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "");
  EXPECT_EQ(NodeCondition(), "False Xid79 GPU 0: fell off the bus; reset it");
}

TEST_F(AgentTest, OffersUnhealthyInstanceAsUnhealthyAndReportsItUsed) {
  ASSERT_TRUE(gpus_.Place(0, "3g.20gb", 4).ok());
  ASSERT_TRUE(gpus_.Place(0, "3g.20gb", 0).ok());
  const uint32_t sick = gpus_.ListInstances(0)->front().id;
  health_.Add({device::HealthCondition::Kind::kXid, 0, sick, 64, "row remapping failed"});
  Run();
  ASSERT_EQ(kubelet_.offer().size(), 2u);
  EXPECT_NE(kubelet_.offer()[0].healthy, kubelet_.offer()[1].healthy);
  const std::string layout = Annotation("status-layout-0");
  EXPECT_NE(layout.find(":used"), std::string::npos) << layout;
  EXPECT_NE(layout.find(":free"), std::string::npos) << layout;
}

TEST_F(AgentTest, ReportsHowContainersGetDevices) {
  const std::string type(kDeviceHandover);
  handover_ = {type, "False", "DriverFilesNotFound", "no libcuda.so"};
  Run();
  const std::string gauge = "nos_agent_device_handover{reason=";
  EXPECT_NE(metrics_.Text().find(gauge + R"("DriverFilesNotFound"} 0)"), std::string::npos);
  EXPECT_NE(Events().find("DriverFilesNotFound"), std::string::npos) << Events();
  handover_ = {type, "True", "DeviceNodes", "the configuration says so"};
  Run();
  EXPECT_NE(metrics_.Text().find(gauge + R"("DeviceNodes"} 1)"), std::string::npos);
  EXPECT_EQ(metrics_.Text().find("DriverFilesNotFound"), std::string::npos);
}

TEST_F(AgentTest, HealthyNodeHasNoGpusHealthyCondition) {
  Run();
  EXPECT_EQ(NodeCondition(), "");
}

TEST_F(AgentTest, CountsDeviceOperationsInMetrics) {
  Apply("7", {{0, "3g.20gb@4,1g.5gb@0"}}, seconds(30));
  const std::string text = metrics_.Text();
  EXPECT_NE(text.find(R"(nos_agent_device_operations_total{operation="create",result="ok"} 2)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"(profile="3g.20gb",state="free"} 1)"), std::string::npos) << text;
}

TEST_F(AgentTest, ReportsAndOffersExistingInstances) {
  ASSERT_TRUE(gpus_.Place(1, "3g.20gb", 4).ok());
  Run();
  EXPECT_THAT(Layouts(), ElementsAre("", "3g.20gb@4:free"));
  EXPECT_EQ(Annotation("status-gpu-1-3g.20gb-free"), "1");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "") << "no plan was requested";
  ASSERT_EQ(kubelet_.offer().size(), 1u);
  EXPECT_EQ(kubelet_.offer()[0].resource, "nvidia.com/mig-3g.20gb");
  EXPECT_EQ(destroyed_, 0) << "without a spec everything stays";
}

TEST_F(AgentTest, AppliesAPlanAndThenAcknowledgesIt) {
  Run();
  Apply("7", {{0, "3g.20gb@4,1g.5gb@0"}, {1, "7g.40gb@0"}}, seconds(30));
  EXPECT_THAT(Layouts(), ElementsAre("1g.5gb@0:free,3g.20gb@4:free", "7g.40gb@0:free"));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_TRUE(reconcile::ReadPlanResult(Annotation("partitioning-result"))->applied);
  EXPECT_EQ(kubelet_.offer().size(), 3u);
  EXPECT_THAT(EventReasons(api_), Contains("Partitioned gpu-1"));
}

// The Go agent acknowledged a plan as soon as it had read it.
TEST_F(AgentTest, DoesNotAcknowledgePlanBeforeItIsApplied) {
  fault_ = [](const device::SimAttempt&) { return device::SimFault::kBusy; };
  Apply("7", {{0, "7g.40gb@0"}}, seconds(3));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
  fault_ = {};
  Run(seconds(30));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

// With the Go agent a failed plan looked acknowledged and was not retried.
TEST_F(AgentTest, ReportsFailedOperationAndKeepsRetrying) {
  fault_ = [](const device::SimAttempt& attempt) {
    return attempt.gpu == 0 ? device::SimFault::kFails : device::SimFault::kNone;
  };
  Apply("7", {{0, "7g.40gb@0"}, {1, "7g.40gb@0"}}, seconds(120));
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free") << "the other GPU does not wait";
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  const auto result = reconcile::ReadPlanResult(Annotation("partitioning-result"));
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE(result->applied);
  EXPECT_EQ(result->obstacles.back().code, "DeviceError");
  EXPECT_EQ(result->obstacles.back().gpu, 0);
  EXPECT_THAT(EventReasons(api_), Contains("DeviceOperationFailed gpu-1"));
  fault_ = {};
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
  EXPECT_TRUE(reconcile::ReadPlanResult(Annotation("partitioning-result"))->applied);
}

TEST_F(AgentTest, KeepsUsedInstanceAndReportsObstacle) {
  const auto used = gpus_.Place(0, "1g.5gb", 5).value();
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Bind("a", "1g.5gb");
  Apply("7", {{0, "3g.20gb@4,2g.10gb@0"}}, seconds(30));
  EXPECT_EQ(Annotation("status-layout-0"), "2g.10gb@0:free,1g.5gb@5:used");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  const auto result = reconcile::ReadPlanResult(Annotation("partitioning-result")).value();
  EXPECT_FALSE(result.applied);
  EXPECT_EQ(result.obstacles.at(0).code, "InUse");
  EXPECT_EQ(destroyed_, 0);
  EXPECT_NE(result.obstacles.at(0).message.find(used.uuid), std::string::npos);
  api_.Remove("pods", "ml/a");
  kubelet_.Remove("ml", "a");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "2g.10gb@0:free,3g.20gb@4:free");
}

// The Go agent destroyed devices in use when it started.
TEST_F(AgentTest, StartDestroysOnlyInstanceThatCrashLeftIncomplete) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Run();
  ASSERT_TRUE(kubelet_.Admit("ml", "a", "nvidia.com/mig-1g.5gb").ok());
  Plan("7", {{0, "1g.5gb@0,3g.20gb@4,1g.5gb@1"}});
  fault_ = [](const device::SimAttempt& attempt) {
    return attempt.profile == "3g.20gb" ? device::SimFault::kCrashBetween : device::SimFault::kNone;
  };
  Run(seconds(1));
  const auto half_made = [&] {
    return std::any_of(gpus_.Truth(0).begin(), gpus_.Truth(0).end(),
                       [](const auto& instance) { return !instance.complete; });
  };
  fault_ = {};
  EXPECT_TRUE(half_made());
  Restart();
  Run();
  EXPECT_FALSE(half_made());
  EXPECT_EQ(Annotation("status-layout-0"), "1g.5gb@0:used,1g.5gb@1:free,3g.20gb@4:free");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, ConvergesWithACrashAfterEveryStep) {
  ASSERT_TRUE(gpus_.Place(0, "2g.10gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 6).ok());
  Plan("7", {{0, "4g.20gb@0,1g.5gb@4"}, {1, "3g.20gb@0,3g.20gb@4"}});
  for (int i = 0; i < 200 && Annotation("status-partitioning-plan") != "7"; ++i) {
    if (i % 7 == 0) Restart();
    runner_->Step(clock_);
    clock_.Advance(milliseconds(400));
  }
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_THAT(Layouts(),
              ElementsAre("4g.20gb@0:free,1g.5gb@4:free", "3g.20gb@0:free,3g.20gb@4:free"));
}

TEST_F(AgentTest, RestoresTheLayoutAfterAReboot) {
  Apply("7", {{0, "7g.40gb@0"}}, seconds(30));
  gpus_.Reboot();
  Restart();
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

TEST_F(AgentTest, AppliesPlanOnOtherGpusWhileOneIsLost) {
  gpus_.Lose(0);
  Apply("7", {{0, "7g.40gb@0"}, {1, "7g.40gb@0"}}, seconds(30));
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free");
  EXPECT_EQ(api_.Find("nodes", kNode)
                ->at("metadata")
                .at("annotations")
                .as_object()
                .count("nos.nebuly.com/status-layout-0"),
            0u);
  const auto result = reconcile::ReadPlanResult(Annotation("partitioning-result")).value();
  EXPECT_EQ(result.obstacles.at(0).code, "NoSuchGpu");
  EXPECT_EQ(result.obstacles.at(0).gpu, 0);
  EXPECT_THAT(EventReasons(api_), Contains("GpuNotUsable gpu-1"));
  gpus_.Restore(0);
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "7g.40gb@0:free");
}

TEST_F(AgentTest, ReportsIgnoredGeometriesOfItsOwnGpusOnce) {
  const auto catalogue = gpu::Catalogue::Load(R"(
- {models: [A100-40GB], allowedGeometries: [{7g.40gb: 1}, {3g.20gb: 3}]}
- {models: [A30], allowedGeometries: [{1g.6gb: 5}]}
)");
  ASSERT_TRUE(catalogue.ok());
  catalogue_ = &*catalogue;
  device::SimGpus gpus({{catalogue->FindByName("A100-40GB"), ""}}, kNode, Hooks());
  Restart(gpus);
  Run();
  Run();
  EXPECT_THAT(EventReasons(api_), ElementsAre("GeometryIgnored gpu-1"));
  EXPECT_THAT(Events(), AllOf(HasSubstr("A100-40GB"), Not(HasSubstr("A30"))));
  EXPECT_EQ(Annotation("status-layout-0"), "");
}

TEST_F(AgentTest, ReportsMalformedSpecAndKeepsLayout) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Apply("7", {{0, "9g.90gb@0"}, {1, "7g.40gb@0"}}, seconds(30));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_THAT(Layouts(), ElementsAre("1g.5gb@0:free", "7g.40gb@0:free"));
  EXPECT_EQ(reconcile::ReadPlanResult(Annotation("partitioning-result"))->obstacles.at(0).code,
            "BadSpec");
}

TEST_F(AgentTest, ReportsContradictorySpecAndKeepsLayout) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  ASSERT_TRUE(gpus_.Place(1, "1g.5gb", 0).ok());
  Annotate("spec-gpu-0-7g.40gb", "1");
  Annotate("spec-gpu-1-7g.40gb", "1");
  Apply("7", {{0, "nonsense"}, {1, "3g.20gb@4"}}, seconds(30));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_THAT(Layouts(), ElementsAre("1g.5gb@0:free", "1g.5gb@0:free"));
  EXPECT_EQ(reconcile::ReadPlanResult(Annotation("partitioning-result"))->obstacles.size(), 2u);
}

// The Go agent did not notice that the label had been removed from a node.
TEST_F(AgentTest, DoesNotPartitionNodeWithoutLabel) {
  ASSERT_TRUE(gpus_.Place(0, "1g.5gb", 0).ok());
  Json node = *api_.Find("nodes", kNode);
  MakeObject(node, "metadata", "labels").erase("nos.nebuly.com/gpu-partitioning");
  api_.Put(node);
  Apply("7", {{0, "7g.40gb@0"}}, seconds(30));
  EXPECT_EQ(destroyed_, 0);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
}

TEST_F(AgentTest, RetriesAfterFirstPauseInsteadOfNextPoll) {
  config_.poll = seconds(3600);
  Restart();
  Run();
  int failures = 1;
  fault_ = [&](const device::SimAttempt&) {
    return failures-- > 0 ? device::SimFault::kBusy : device::SimFault::kNone;
  };
  Apply("7", {{0, "7g.40gb@0"}}, seconds(2));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AgentTest, WritesAndOffersNothingWhenIdle) {
  Apply("7", {{0, "7g.40gb@0"}}, seconds(30));
  const size_t writes = api_.writes.size();
  const int offers = kubelet_.offers;
  Run(seconds(300));
  EXPECT_EQ(api_.writes.size(), writes);
  EXPECT_EQ(kubelet_.offers, offers);
}

}  // namespace
}  // namespace nos::agent
