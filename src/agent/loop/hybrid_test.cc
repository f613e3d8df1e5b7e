// Nodes on which each GPU has its own sharing mode.
#include <gmock/gmock.h>

#include "agent/loop/fixture_test.h"
#include "base/text.h"
#include "device/mps_gpus.h"
#include "device/plain_gpus.h"

namespace nos::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AgentHybridTest : public AgentTest {
 protected:
  AgentHybridTest() {
    Label("hybrid");
    Start();
  }

  // Starts a new agent, which knows only what driver and kubelet report.
  void Start() {
    runner_.reset();
    shares_ = std::make_unique<device::MpsGpus>(boards_);
    plain_ = std::make_unique<device::PlainGpus>(mps_ ? static_cast<device::Backend&>(*shares_)
                                                      : boards_);
    Restart(*plain_, {.mps = mps_,
                      .whole = true,
                      .time_slices = time_slices_,
                      .whole_on_mig_nodes = on_mig_nodes_});
  }
  std::string Uuid(int gpu) { return boards_.ListGpus()->at(static_cast<size_t>(gpu)).uuid; }

  device::SimGpus boards_{{{gpu::Catalogue::Builtin().FindByName("H100-80GB"), "", false},
                           {gpu::Catalogue::Builtin().FindByName("H100-80GB"), "", false}},
                          kNode,
                          Hooks()};
  int time_slices_ = 4;
  bool mps_ = true, on_mig_nodes_ = false;
  std::unique_ptr<device::MpsGpus> shares_;
  std::unique_ptr<device::PlainGpus> plain_;
};

TEST_F(AgentHybridTest, ReportsModelAndAlternativeModelOfEachGpu) {
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "H100-80GB+GPU+TIME-4");
  EXPECT_EQ(Annotation("status-other-model-0"), "MPS-79GB");
  EXPECT_EQ(Annotation("status-layout-1"), "");
}

TEST_F(AgentHybridTest, SwitchesEachGpuToRequestedMode) {
  Run();
  Apply("1", {{0, "3g.40gb@4,1g.10gb@0"}, {1, "10gb@0,20gb@1"}});
  EXPECT_THAT(Layouts(), ElementsAre("1g.10gb@0:free,3g.40gb@4:free", "10gb@0:free,20gb@1:free"));
  EXPECT_EQ(Annotation("status-model-1"), "MPS-79GB");
  EXPECT_EQ(Annotation("status-other-model-1"), "H100-80GB+GPU+TIME-4");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "1");
  EXPECT_EQ(boards_.Info(1).compute_mode, device::ComputeMode::kExclusiveProcess);

  Apply("2", {{0, "gpu@0"}, {1, "shared@0,shared@4"}});
  EXPECT_THAT(Layouts(), ElementsAre("gpu@0:free", "shared@0:free,shared@4:free"));
  EXPECT_EQ(Annotation("status-gpu-1-shared-free"), "2");
  EXPECT_FALSE(boards_.Info(0).mig_enabled);
  EXPECT_EQ(boards_.Info(1).compute_mode, device::ComputeMode::kDefault);
  EXPECT_TRUE(kubelet_.Offers(Uuid(0)));
  EXPECT_TRUE(kubelet_.Offers(Uuid(1) + "::time::4"));

  Apply("3", {{0, "39gb@5"}, {1, "7g.80gb@0"}});
  EXPECT_THAT(Layouts(), ElementsAre("39gb@5:free", "7g.80gb@0:free"));
  EXPECT_FALSE(kubelet_.Offers(Uuid(0)));
}

TEST_F(AgentHybridTest, GpuWithUsedDevicesKeepsItsMode) {
  Run();
  Apply("1", {{0, "gpu@0"}, {1, "shared@0,shared@2"}});
  Hold("whole", "gpu", Uuid(0));
  Hold("turn", "gpu.shared", Uuid(1) + "::time::2");
  Run();
  EXPECT_THAT(Layouts(), ElementsAre("gpu@0:used", "shared@0:free,shared@2:used"));
  EXPECT_EQ(Annotation("status-holders-0"), "gpu@0=ml/whole");
  Apply("2", {{0, "3g.40gb@4"}, {1, "20gb@0"}});
  EXPECT_EQ(Annotation("status-layout-0"), "gpu@0:used");
  EXPECT_EQ(Annotation("status-layout-1"), "shared@2:used") << "free slices are removed";
  EXPECT_THAT(Obstacles(), Contains("InUse"));
  End("whole");
  End("turn");
  Run(seconds(120));
  EXPECT_THAT(Layouts(), ElementsAre("3g.40gb@4:free", "20gb@0:free"));
}

// In exclusive mode a GPU serves one process at a time, so time slices would not work.
TEST_F(AgentHybridTest, NewAgentResetsComputeModeOfSharedGpu) {
  Run();
  Apply("1", {{0, "10gb@0"}}, seconds(30));
  ASSERT_EQ(boards_.Info(0).compute_mode, device::ComputeMode::kExclusiveProcess);
  Start();
  Apply("2", {{0, "shared@0,shared@2"}});
  EXPECT_EQ(Annotation("status-layout-0"), "shared@0:free,shared@2:free");
  EXPECT_EQ(boards_.Info(0).compute_mode, device::ComputeMode::kDefault);
}

TEST_F(AgentHybridTest, AgentWithoutMpsResetsComputeModeOnceSharesAreFree) {
  Run();
  Apply("1", {{0, "10gb@0"}, {1, "20gb@0"}});
  Hold("share", "gpu-10gb", Uuid(0) + "::10::0");
  Run();
  ASSERT_EQ(boards_.Info(1).compute_mode, device::ComputeMode::kExclusiveProcess);
  mps_ = false;
  Start();
  Apply("2", {{0, "shared@0"}, {1, "shared@0,shared@2"}});
  EXPECT_EQ(boards_.Info(1).compute_mode, device::ComputeMode::kDefault);
  EXPECT_EQ(Annotation("status-layout-1"), "shared@0:free,shared@2:free");
  EXPECT_EQ(boards_.Info(0).compute_mode, device::ComputeMode::kExclusiveProcess);
  EXPECT_FALSE(kubelet_.Offers(Uuid(0) + "::time::0")) << "a pod holds a share of it";
  End("share");
  Run(seconds(60));
  EXPECT_EQ(boards_.Info(0).compute_mode, device::ComputeMode::kDefault);
  EXPECT_EQ(Annotation("status-layout-0"), "shared@0:free");
}

// A kubelet that has just started reports for a moment that no pod holds a device.
TEST_F(AgentHybridTest, SwitchesNothingWhileKubeletListsNoHolders) {
  Run();
  Apply("1", {{0, "gpu@0"}});
  Hold("whole", "gpu", Uuid(0));
  Run();
  Apply("2", {{0, "3g.40gb@4"}, {1, "10gb@0"}}, seconds(30));
  kubelet_.Remove("ml", "whole");
  Start();
  Run(seconds(60));
  EXPECT_FALSE(boards_.Info(0).mig_enabled);
  Hold("whole", "gpu", Uuid(0));
  Run(seconds(60));
  EXPECT_THAT(Layouts(), ElementsAre("gpu@0:used", "10gb@0:free"));
}

TEST_F(AgentHybridTest, ReportsObstacleWhenMigCannotBeEnabled) {
  fault_ = [](const device::SimAttempt& attempt) {
    return attempt.kind == device::SimAttempt::Kind::kEnableMig ? device::SimFault::kFails
                                                                : device::SimFault::kNone;
  };
  Run();
  Apply("1", {{0, "3g.40gb@4"}, {1, "gpu@0"}}, seconds(300));
  EXPECT_EQ(Annotation("status-layout-1"), "gpu@0:free");
  EXPECT_THAT(Annotation("partitioning-result"), HasSubstr("\"gpu\":0"));
}

// In every case no held device is lost, and the last plan is applied.
TEST_F(AgentHybridTest, ConvergesFromAnyState) {
  const std::vector<std::string> layouts = {"",
                                            "gpu@0",
                                            "shared@0,shared@2",
                                            "shared@6",
                                            "7g.80gb@0",
                                            "1g.10gb@0,3g.40gb@4",
                                            "10gb@0,20gb@1",
                                            "70gb@3"};
  Run();
  for (uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    RunAtRandom(
        random, seed, layouts,
        [](const auto& device) { return !device.device_id.starts_with("MIG-"); },
        [this] { Start(); });
    const std::string plan = std::to_string(1000 * (seed + 1) + 999);
    const std::string first = layouts[1 + random.Below(layouts.size() - 1)];
    Apply(plan, {{0, first}, {1, "gpu@0"}}, seconds(300));
    EXPECT_EQ(Annotation("status-layout-1"), "gpu@0:free");
    EXPECT_EQ(boards_.Info(1).compute_mode, device::ComputeMode::kDefault);
    std::string there = Annotation("status-layout-0");
    for (size_t at = 0; (at = there.find(":free")) != std::string::npos;) there.erase(at, 5);
    EXPECT_EQ(there, first);
    EXPECT_EQ(Annotation("status-partitioning-plan"), plan);
  }
}

TEST_F(AgentHybridTest, LeavingHybridModeKeepsHeldDevices) {
  Run();
  Apply("1", {{0, "shared@0,shared@2"}, {1, "10gb@0"}});
  Hold("turn", "gpu.shared", Uuid(0) + "::time::2");
  Run();
  Label("mig");
  Run(seconds(60));
  Apply("2", {{0, "3g.40gb@4"}, {1, "3g.40gb@4"}}, seconds(120));
  EXPECT_FALSE(boards_.Info(0).mig_enabled) << "a pod uses it";
  EXPECT_EQ(Annotation("status-layout-1"), "3g.40gb@4:free");
  EXPECT_EQ(Annotation("status-other-model-1"), "");
  End("turn");
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
}

// A leftover time slice may be missing in the agent's list and in the kubelet's.
TEST_F(AgentHybridTest, EnablesNoMigWhileKubeletListsNoTimeSlices) {
  Run();
  Apply("1", {{0, "shared@0,shared@2"}});
  Hold("turn", "gpu.shared", Uuid(0) + "::time::2");
  Run();
  Label("mig");
  Apply("2", {{0, "3g.40gb@4"}});
  kubelet_.Remove("ml", "turn");
  Run(seconds(60));
  EXPECT_FALSE(boards_.Info(0).mig_enabled);
  Start();
  Run(seconds(60));
  EXPECT_FALSE(boards_.Info(0).mig_enabled) << "a new agent must not enable MIG either";
  End("turn");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
}

TEST_F(AgentHybridTest, LeavingHybridModeWaitsForPodThatMayGetTimeSlice) {
  Run();
  Apply("1", {{0, "shared@0,shared@2"}});
  Json pod =
      BoundPod("turn", "turn-uid", {},
               {{{"name", "c"}, {"resources", {{"limits", {{"nvidia.com/gpu.shared", "1"}}}}}}});
  api_.Put(pod);
  Label("mig");
  Apply("2", {{0, "3g.40gb@4"}});
  EXPECT_FALSE(boards_.Info(0).mig_enabled) << "the kubelet may have chosen a slice of it";
  End("turn");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
}

TEST_F(AgentHybridTest, NewAgentDoesNotPartitionGpuOfWhichAPodHoldsAShare) {
  Run();
  Apply("1", {{0, "20gb@0"}});
  Hold("share", "gpu-20gb", Uuid(0) + "::20::0");
  Run();
  Label("mig");
  Plan("2", {{0, "3g.40gb@4"}});
  Start();
  Run(seconds(60));
  EXPECT_FALSE(boards_.Info(0).mig_enabled);
  EXPECT_EQ(Annotation("status-layout-0"), "20gb@0:used");
  kubelet_.Remove("ml", "share");
  Start();
  Run(seconds(60));
  EXPECT_FALSE(boards_.Info(0).mig_enabled) << "the kubelet does not list the share yet";
  End("share");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
}

// Otherwise the GPU would switch for ever between MIG for the spec and sharing for the label.
TEST_F(AgentHybridTest, OldSpecDoesNotPreventSharingByMps) {
  int switches = 0;
  fault_ = [&](const device::SimAttempt& attempt) {
    using enum device::SimAttempt::Kind;
    switches += attempt.kind == kEnableMig || attempt.kind == kDisableMig ? 1 : 0;
    return device::SimFault::kNone;
  };
  Label("mig");
  Run();
  Apply("1", {{0, "3g.40gb@4"}});
  ASSERT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
  Label("mps");
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-model-0"), "MPS-79GB");
  EXPECT_EQ(switches, 2) << "MIG on, MIG off";
  Start();
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-model-0"), "MPS-79GB") << "a new agent must not switch it either";
  EXPECT_EQ(switches, 2);
}

TEST_F(AgentHybridTest, DoesNotTakeMigGpuInExclusiveModeForASharedOne) {
  ASSERT_TRUE(boards_.SetComputeMode(0, device::ComputeMode::kExclusiveProcess).ok());
  Label("mig");
  Run();
  Apply("1", {{0, "3g.40gb@4"}});
  ASSERT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
  Label("hybrid");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
  Apply("2", {{0, "shared@0,shared@2"}});
  EXPECT_EQ(Annotation("status-layout-0"), "shared@0:free,shared@2:free");
  EXPECT_EQ(boards_.Info(0).compute_mode, device::ComputeMode::kDefault);
}

TEST_F(AgentHybridTest, RemovesTimeSliceOfOldSettingsOnceItIsFree) {
  Run();
  Apply("1", {{0, "shared@0,shared@2"}});
  Hold("turn", "gpu.shared", Uuid(0) + "::time::2");
  Run();
  time_slices_ = 2;
  Start();
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "shared@2:used");
  End("turn");
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "") << "no plan can include it";
  Apply("2", {{0, "shared@0,shared@4"}});
  EXPECT_EQ(Annotation("status-layout-0"), "shared@0:free,shared@4:free");
}

class AgentWholeTest : public AgentHybridTest {
 protected:
  AgentWholeTest() {
    on_mig_nodes_ = true;
    Label("mig");
    Start();
  }
};

TEST_F(AgentWholeTest, MigNodesReportWholeGpusAndNoShares) {
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "H100-80GB+GPU");
  EXPECT_EQ(Annotation("status-other-model-0"), "");
  EXPECT_EQ(Annotation("status-layout-0"), "");
}

TEST_F(AgentWholeTest, UnusedGpusCountInTheCapacityOnly) {
  Run();
  const kubelet::OfferedDevice unused{"nvidia.com/gpu", Uuid(0), false};
  EXPECT_THAT(kubelet_.offer(), Contains(unused));
  EXPECT_THAT(kubelet_.offer(), Contains(kubelet::OfferedDevice{"nvidia.com/gpu", Uuid(1), false}));
  Apply("1", {{0, "3g.40gb@4"}});
  EXPECT_FALSE(kubelet_.Offers(Uuid(0))) << "its slices count";
  Apply("2", {{0, ""}});
  EXPECT_THAT(kubelet_.offer(), Contains(unused));
}

TEST_F(AgentWholeTest, GivesAGpuAndTakesItBack) {
  Run();
  Apply("1", {{0, "3g.40gb@4,1g.10gb@0"}, {1, "gpu@0"}});
  EXPECT_THAT(Layouts(), ElementsAre("1g.10gb@0:free,3g.40gb@4:free", "gpu@0:free"));
  EXPECT_THAT(kubelet_.offer(), Contains(kubelet::OfferedDevice{"nvidia.com/gpu", Uuid(1), true}));
  Hold("whole", "gpu", Uuid(1));
  Apply("2", {{0, "gpu@0"}, {1, "7g.80gb@0"}});
  EXPECT_THAT(Layouts(), ElementsAre("gpu@0:free", "gpu@0:used"));
  EXPECT_FALSE(boards_.Info(0).mig_enabled);
  End("whole");
  Apply("3", {{1, "7g.80gb@0"}});
  EXPECT_EQ(Annotation("status-layout-1"), "7g.80gb@0:free");
  EXPECT_TRUE(boards_.Info(1).mig_enabled);
}

TEST_F(AgentWholeTest, SharesOfAnEarlierModeEnd) {
  Label("hybrid");
  Run();
  Apply("1", {{0, "10gb@0,20gb@1"}, {1, "shared@0,shared@2"}});
  Hold("share", "gpu-10gb", "GPU-" + Uuid(0).substr(4) + "::10::0");
  Label("mig");
  Run(seconds(60));
  EXPECT_EQ(boards_.Info(0).compute_mode, device::ComputeMode::kExclusiveProcess)
      << "a pod still uses it";
  End("share");
  Run(seconds(60));
  EXPECT_EQ(boards_.Info(0).compute_mode, device::ComputeMode::kDefault);
  EXPECT_EQ(Annotation("status-model-0"), "H100-80GB+GPU");
  EXPECT_EQ(Annotation("status-layout-1"), "");
}

}  // namespace
}  // namespace nos::agent
