// Nodes whose GPUs are shared by MPS.
#include <gmock/gmock.h>

#include "agent/loop/fixture_test.h"
#include "cluster/placeholder.h"
#include "device/mps_gpus.h"
#include "gpu/shares.h"
#include "reconcile/testing/event_reasons.h"

namespace nos::agent {
namespace {

using reconcile::testing::EventReasons;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

class AgentMpsTest : public AgentTest {
 protected:
  AgentMpsTest() {
    SwitchMigOff();
    Label("mps");
    Start();
  }

  // An A100 needs a reset to leave MIG mode.
  void SwitchMigOff() {
    for (int gpu = 0; gpu < 2; ++gpu) EXPECT_EQ(gpus_.DisableMig(gpu).code(), Code::kPermission);
    gpus_.Reboot();
  }

  // Starts a new agent, which knows no shares.
  void Start() { Start(gpus_); }
  void Start(device::Backend& boards) {
    runner_.reset();
    shares_ = std::make_unique<device::MpsGpus>(boards, mps_options_);
    Restart(*shares_, {.mps = true, .mps_requirements = needs_});
  }
  std::string Uuid(int gpu) { return gpus_.ListGpus()->at(gpu).uuid; }
  device::ComputeMode ModeOf(int gpu) { return *gpus_.ListGpus()->at(gpu).compute_mode; }
  void Hold(const std::string& pod, const std::string& size, const std::string& number) {
    AgentTest::Hold(pod, "gpu-" + size + "gb", Uuid(0) + "::" + size + "::" + number);
  }

  // Shares GPU 0: a pod holds 10 GiB, and 20 GiB are free.
  void ShareAndHold() {
    Run();
    Apply("7", {{0, "10gb@0,20gb@1"}}, seconds(30));
    Hold("a", "10", "0");
    Run();
  }

  device::MpsGpusOptions mps_options_;
  std::unique_ptr<device::MpsGpus> shares_;
  MpsPodRequirements needs_;
};

TEST_F(AgentMpsTest, LabelSharesUnusedGpus) {
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "MPS-39GB");
  EXPECT_EQ(Annotation("status-layout-1"), "");
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kExclusiveProcess);
  Apply("7", {{0, "10gb@0,10gb@1,5gb@2"}}, seconds(30));
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:free,10gb@1:free,5gb@2:free");
  EXPECT_EQ(Annotation("status-gpu-0-10gb-free"), "2");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
  EXPECT_TRUE(kubelet_.Offers(Uuid(0) + "::10::1"));
}

TEST_F(AgentMpsTest, LabelWithOldPrefixSharesGpus) {
  Json node = *api_.Find("nodes", kNode);
  JsonObject& labels = MakeObject(node, "metadata", "labels");
  labels.erase("nos.nebuly.com/gpu-partitioning");
  labels["n8s.nebuly.ai/gpu-partitioning"] = "mps";
  api_.Put(node);
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "MPS-39GB");
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kExclusiveProcess);
}

TEST_F(AgentMpsTest, KeepsHeldSharesAndReplacesFreeOnes) {
  ShareAndHold();
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:used,20gb@1:free");
  EXPECT_EQ(Annotation("status-holders-0"), "10gb@0=ml/a");
  Apply("8", {{0, "15gb@2,12gb@3"}});
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:used,15gb@2:free,12gb@3:free");
}

TEST_F(AgentMpsTest, PublishesEventForGpuWithTooLittleMemoryForShares) {
  mps_options_.overhead_mib = int64_t{40} * 1024;
  Start();
  Run();
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kDefault);
  EXPECT_THAT(EventReasons(api_), Contains("DeviceOperationFailed gpu-1"));
}

TEST_F(AgentMpsTest, HeldSharesStayWhenGpuMayHaveFewerNow) {
  Run();
  Apply("7", {{0, "30gb@0,9gb@1"}}, seconds(30));
  Hold("a", "30", "0");
  Hold("b", "9", "1");
  Run();
  mps_options_.overhead_mib = int64_t{6} * 1024;
  Start();
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "30gb@0:used,9gb@1:used");
  EXPECT_EQ(Annotation("status-model-0"), "MPS-39GB") << "the held shares without free memory";
  EXPECT_EQ(Annotation("status-model-1"), "MPS-34GB");
  const cluster::Node node = cluster::DecodeNode(*api_.Find("nodes", kNode)).value();
  const cluster::NodeGpus gpus = cluster::ReadNodeGpus(node, gpu::Catalogue::Builtin());
  EXPECT_EQ(gpus.gpus.size(), 2u) << "planners must be able to read it";
  EXPECT_TRUE(gpus.problems.empty());
  End("b");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "30gb@0:used")
      << "a share that does not fit is not created again";
  EXPECT_EQ(Annotation("status-model-0"), "MPS-34GB");
  Apply("8", {{0, "30gb@0,4gb@2"}});
  EXPECT_EQ(Annotation("status-layout-0"), "30gb@0:used,4gb@2:free");
}

// A kubelet that has just started reports for a moment that no pod holds a device.
TEST_F(AgentMpsTest, CreatesNoShareBesideSharesThatKubeletDoesNotListYet) {
  Run();
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  Hold("a", "10", "0");
  Run();
  Apply("8", {{0, "39gb@1"}}, seconds(30));
  kubelet_.Remove("ml", "a");
  Start();
  Run();
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kExclusiveProcess);
  EXPECT_FALSE(kubelet_.Offers(Uuid(0) + "::39::1"));
  Hold("a", "10", "0");
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:used");
  End("a");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "39gb@1:free");
}

TEST_F(AgentMpsTest, DoesNotShareGpuThatAPodHoldsWhole) {
  AgentTest::Hold("whole", "gpu", Uuid(1));
  Run();
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kExclusiveProcess);
  EXPECT_EQ(ModeOf(1), device::ComputeMode::kDefault);
}

// A kubelet that has just started reports for a moment that no pod holds a device.
TEST_F(AgentMpsTest, DoesNotShareGpuWithoutMigThatAPodMayHoldWhole) {
  device::SimGpus boards({{&gpu::SharesOf(15)}}, kNode, Hooks());
  Start(boards);
  Json pod = BoundPod("whole", "u", {},
                      {{{"name", "c"}, {"resources", {{"limits", {{"nvidia.com/gpu", "1"}}}}}}});
  pod.as_object()["status"] = {{"phase", "Running"},
                               {"conditions", JsonArray{{{"type", "Ready"}, {"status", "True"}}}}};
  api_.Put(pod);
  Run();
  EXPECT_EQ(boards.Info(0).compute_mode, device::ComputeMode::kDefault);
  kubelet_.Assign({"ml", "whole", "c", "nvidia.com/gpu", boards.Info(0).uuid});
  Run();
  EXPECT_EQ(boards.Info(0).compute_mode, device::ComputeMode::kDefault);
  End("whole");
  Run();
  EXPECT_EQ(boards.Info(0).compute_mode, device::ComputeMode::kExclusiveProcess);
  runner_.reset();
}

// The Go agent left GPUs in EXCLUSIVE_PROCESS mode.
TEST_F(AgentMpsTest, ResetsComputeModeOnceLastShareIsFree) {
  ShareAndHold();
  Label("none");
  Run(seconds(60));
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kExclusiveProcess) << "a pod holds a share of it";
  EXPECT_EQ(ModeOf(1), device::ComputeMode::kDefault);
  EXPECT_FALSE(kubelet_.Offers(Uuid(0) + "::20::1"));
  End("a");
  Run(seconds(60));
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kDefault);
}

TEST_F(AgentMpsTest, NewAgentResetsComputeModeOfGpuSharedByEarlierAgent) {
  ShareAndHold();
  Label("none");
  Start();
  Run(seconds(60));
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kExclusiveProcess) << "a pod holds a share of it";
  End("a");
  Run(seconds(60));
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kDefault);
}

TEST_F(AgentMpsTest, DestroysInstancesBeforeSharingGpu) {
  for (int gpu = 0; gpu < 2; ++gpu) EXPECT_FALSE(gpus_.EnableMig(gpu).ok());
  gpus_.Reboot();
  Label("mig");
  Run();
  Apply("3", {{0, "3g.20gb@4"}}, seconds(30));
  ASSERT_EQ(Annotation("status-layout-0"), "3g.20gb@4:free");
  Label("mps");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "");
  EXPECT_THAT(EventReasons(api_), Contains("DeviceOperationFailed gpu-1"));
  gpus_.Reboot();
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-model-0"), "MPS-39GB");
}

TEST_F(AgentMpsTest, RestoresComputeModeThatDriverLost) {
  Run();
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  Hold("a", "10", "0");
  ASSERT_TRUE(gpus_.SetComputeMode(0, device::ComputeMode::kDefault).ok());
  Run();
  EXPECT_EQ(ModeOf(0), device::ComputeMode::kExclusiveProcess);
}

TEST_F(AgentMpsTest, PublishesUnmetMpsRequirementsOnPods) {
  needs_ = {true, true};
  Start();
  ShareAndHold();
  EXPECT_THAT(EventReasons(api_), Contains("MpsNeedsHostIPC ml/a"));
  const auto run_as = [&](const std::string& pod, int user) {
    Json object = *api_.Find("pods", "ml/" + pod);
    MakeObject(object, "spec")["hostIPC"] = true;
    MakeObject(object, "spec", "securityContext")["runAsUser"] = user;
    api_.Put(object);
  };
  run_as("a", 1000);
  Hold("b", "20", "1");
  run_as("b", 1000);
  Run();
  EXPECT_THAT(Events(), Not(HasSubstr("MpsOtherUser")));
  run_as("b", 0);
  Run();
  EXPECT_THAT(EventReasons(api_), Contains("MpsOtherUser ml/b"));
}

TEST_F(AgentMpsTest, PlaceholderNeedsNoHostIpc) {
  needs_ = {true, true};
  Start();
  Run();
  Apply("7", {{0, "10gb@0"}}, seconds(30));
  Hold("a", "10", "0");
  Json object = *api_.Find("pods", "ml/a");
  MakeObject(object, "metadata", "labels")[cluster::kPlaceholder] = "r-1";
  api_.Put(object);
  Run();
  EXPECT_THAT(Events(), Not(HasSubstr("MpsNeedsHostIPC")));
}

TEST_F(AgentMpsTest, ChecksMpsRequirementsOfInitContainersAndAllUsers) {
  needs_ = {true, true};
  Start();
  Run();
  Apply("7", {{0, "10gb@0,20gb@1"}}, seconds(30));
  Hold("a", "10", "0");
  Json object = *api_.Find("pods", "ml/a");
  MakeObject(object, "spec")["initContainers"] = MakeObject(object, "spec").at("containers");
  MakeObject(object, "spec")["containers"] = JsonArray{{{"name", "plain"}}};
  api_.Put(object);
  Run();
  EXPECT_THAT(Events(), HasSubstr("MpsNeedsHostIPC"));
  Hold("b", "20", "1");
  object = *api_.Find("pods", "ml/b");
  JsonArray& containers = MakeObject(object, "spec")["containers"].get_array();
  containers.push_back(containers[0]);
  MakeObject(containers[0], "securityContext")["runAsUser"] = 1;
  MakeObject(containers[1], "securityContext")["runAsUser"] = 2;
  containers[1].get_object()["name"] = "d";
  api_.Put(object);
  Run();
  EXPECT_THAT(EventReasons(api_), Contains("MpsOtherUser ml/b"));
}

TEST_F(AgentMpsTest, PublishesNothingOnPodsThatMeetMpsRequirements) {
  ShareAndHold();
  EXPECT_THAT(Events(), Not(HasSubstr("Mps")));
}

}  // namespace
}  // namespace nos::agent
