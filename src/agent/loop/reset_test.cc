// Hybrid nodes with GPUs that change MIG mode only with a reset.
#include <gmock/gmock.h>

#include "agent/loop/fixture_test.h"
#include "base/random.h"
#include "device/mps_gpus.h"
#include "device/plain_gpus.h"
#include "reconcile/testing/event_reasons.h"

namespace nos::agent {
namespace {

using device::SimAttempt;
using device::SimFault;
using reconcile::testing::EventReasons;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AgentResetTest : public AgentTest {
 protected:
  AgentResetTest() {
    Label("hybrid");
    Start(ResetRule::kGpu);
  }

  device::SimHooks ResetHooks() {
    device::SimHooks hooks = Hooks();
    hooks.on_reset = [this](const std::string& uuid) {
      ++resets_;
      for (const auto& device : kubelet_.offer()) {
        EXPECT_FALSE(device.device_id.starts_with(uuid) && kubelet_.Holds(device.device_id))
            << "reset a GPU that a pod holds";
      }
    };
    return hooks;
  }

  // Starts a new agent, which knows only what driver and kubelet report.
  void Start(ResetRule resets) {
    runner_.reset();
    shares_ = std::make_unique<device::MpsGpus>(*boards_);
    plain_ = std::make_unique<device::PlainGpus>(*shares_);
    Restart(*plain_, {.mps = true, .whole = true, .time_slices = 4, .resets = resets});
  }
  void Use(const char* model) {
    runner_.reset();
    const gpu::Model* found = gpu::Catalogue::Builtin().FindByName(model);
    boards_ = std::make_unique<device::SimGpus>(
        std::vector<device::SimGpuSpec>{{found, "", false}, {found, "", false}}, kNode,
        ResetHooks());
  }
  std::string Uuid(int gpu) { return boards_->Info(gpu).uuid; }
  void RefuseResets(SimFault how) {
    fault_ = [how](const SimAttempt& attempt) {
      return attempt.kind == SimAttempt::Kind::kReset ? how : SimFault::kNone;
    };
  }

  // "status reason message", or "".
  std::string RebootCondition() {
    const cluster::Node node = cluster::DecodeNode(*api_.Find("nodes", kNode)).value();
    const cluster::Condition* condition = FindCondition(node.conditions, kRebootRequired);
    if (condition == nullptr) return "";
    return condition->status + " " + condition->reason + " " + condition->message;
  }

  int resets_ = 0;
  std::unique_ptr<device::SimGpus> boards_ = std::make_unique<device::SimGpus>(
      std::vector<device::SimGpuSpec>{
          {gpu::Catalogue::Builtin().FindByName("A100-40GB"), "", false},
          {gpu::Catalogue::Builtin().FindByName("A100-40GB"), "", false}},
      kNode, ResetHooks());
  std::unique_ptr<device::MpsGpus> shares_;
  std::unique_ptr<device::PlainGpus> plain_;
};

TEST_F(AgentResetTest, GpuKeepsItsModeWithoutPermissionToReset) {
  Start(ResetRule::kNever);
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "GPU-40GB+GPU+TIME-4");
  Apply("1", {{0, "3g.20gb@4"}});
  EXPECT_EQ(resets_, 0);
  EXPECT_FALSE(boards_->Info(0).mig_pending);
  EXPECT_EQ(RebootCondition(), "");
}

TEST_F(AgentResetTest, SwitchesEachGpuWithAReset) {
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "A100-40GB+GPU+TIME-4");
  EXPECT_EQ(Annotation("status-other-model-0"), "MPS-39GB");
  Apply("1", {{0, "3g.20gb@4,1g.5gb@0"}, {1, "gpu@0"}}, seconds(120));
  EXPECT_THAT(Layouts(), ElementsAre("1g.5gb@0:free,3g.20gb@4:free", "gpu@0:free"));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "1");
  EXPECT_EQ(resets_, 1);

  Apply("2", {{0, "10gb@0"}, {1, "7g.40gb@0"}}, seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:free");
  EXPECT_EQ(Annotation("status-model-0"), "MPS-39GB");
  EXPECT_EQ(Annotation("status-layout-1"), "7g.40gb@0:free");
  EXPECT_EQ(resets_, 3);
  EXPECT_THAT(Obstacles(), IsEmpty());
}

TEST_F(AgentResetTest, DoesNotResetGpuInUse) {
  Run();
  Apply("1", {{0, "gpu@0"}, {1, "shared@0,shared@2"}});
  Hold("whole", "gpu", Uuid(0));
  Hold("turn", "gpu.shared", Uuid(1) + "::time::2");
  Run();
  Apply("2", {{0, "3g.20gb@4"}, {1, "1g.5gb@0"}}, seconds(120));
  EXPECT_EQ(resets_, 0);
  EXPECT_FALSE(boards_->Info(0).mig_pending) << "a reboot would change the pod's GPU";
  End("whole");
  Run(seconds(120));
  EXPECT_EQ(resets_, 1);
  EXPECT_EQ(Annotation("status-layout-0"), "3g.20gb@4:free");
  EXPECT_EQ(Annotation("status-layout-1"), "shared@2:used") << "only the free GPU is reset";
}

TEST_F(AgentResetTest, GpuThatCannotBeResetIsUsedInItsPresentMode) {
  RefuseResets(SimFault::kBusy);
  Run();
  Apply("1", {{0, "3g.20gb@4"}, {1, "gpu@0"}}, seconds(40));
  EXPECT_EQ(Annotation("status-partitioning-plan"), "1") << "the plan ends without it";
  EXPECT_THAT(Obstacles(), Contains("NotReset"));
  EXPECT_THAT(EventReasons(api_), Contains("PartitioningIncomplete gpu-1"));
  EXPECT_EQ(Annotation("status-model-0"), "GPU-40GB+GPU+TIME-4");
  EXPECT_EQ(Annotation("status-layout-1"), "gpu@0:free");
  Apply("2", {{0, "shared@0"}}, seconds(10));
  EXPECT_EQ(Annotation("status-layout-0"), "shared@0:free");
  EXPECT_FALSE(boards_->Info(0).mig_pending) << "no plan requests it any more";
}

TEST_F(AgentResetTest, RetriesResetWithGrowingPauses) {
  int tries = 0;
  std::vector<Time> pauses;
  fault_ = [&](const SimAttempt& attempt) {
    if (attempt.kind != SimAttempt::Kind::kReset) return SimFault::kNone;
    if (tries++ % config_.failures_before_giving_up == 0) pauses.push_back(clock_.Now());
    return SimFault::kBusy;
  };
  Run();
  Apply("1", {{0, "3g.20gb@4"}}, std::chrono::minutes(10));
  ASSERT_GE(pauses.size(), 3u);
  EXPECT_GE(pauses[1] - pauses[0], SharingOptions().reset_pauses.base);
  EXPECT_GE(pauses[2] - pauses[1], 2 * SharingOptions().reset_pauses.base);
  EXPECT_THAT(Obstacles(), Contains("NotReset"));
  fault_ = nullptr;
  Run(std::chrono::minutes(20));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.20gb@4:free");
  EXPECT_THAT(Obstacles(), IsEmpty());
}

TEST_F(AgentResetTest, ReportsThatNodeNeedsReboot) {
  Start(ResetRule::kNode);
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "A100-40GB+GPU+TIME-4");
  Apply("1", {{0, "3g.20gb@4"}, {1, "gpu@0"}});
  EXPECT_EQ(resets_, 0);
  EXPECT_TRUE(boards_->Info(0).mig_pending);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "1");
  EXPECT_THAT(Obstacles(), Contains("NeedsReboot"));
  EXPECT_EQ(Annotation("status-model-0"), "GPU-40GB+GPU+TIME-4") << "unchanged until the reboot";
  EXPECT_EQ(Annotation("status-other-model-0"), "MPS-39GB");
  EXPECT_EQ(RebootCondition(),
            "True MigModePending GPU 0 takes MIG mode when the node is rebooted");
  EXPECT_THAT(EventReasons(api_), Contains("MigModePending gpu-1"));
  Start(ResetRule::kNode);
  Run(seconds(60));
  EXPECT_THAT(RebootCondition(), HasSubstr("True")) << "the driver still reports the pending mode";

  boards_->Reboot();
  Start(ResetRule::kNode);
  Run(seconds(60));
  EXPECT_THAT(Layouts(), ElementsAre("3g.20gb@4:free", "gpu@0:free"));
  EXPECT_EQ(RebootCondition(), "False NoRebootPending ");
  EXPECT_THAT(Obstacles(), IsEmpty());
}

TEST_F(AgentResetTest, CancelsPendingModeWhenPresentModeIsRequested) {
  Start(ResetRule::kNode);
  Run();
  Apply("1", {{0, "3g.20gb@4"}});
  EXPECT_THAT(RebootCondition(), HasSubstr("True"));
  Apply("2", {{0, "gpu@0"}});
  EXPECT_FALSE(boards_->Info(0).mig_pending);
  EXPECT_EQ(Annotation("status-layout-0"), "gpu@0:free");
  EXPECT_EQ(RebootCondition(), "False NoRebootPending ");
  EXPECT_EQ(Annotation("status-model-0"), "A100-40GB+GPU+TIME-4")
      << "MIG layouts can be requested again";
}

TEST_F(AgentResetTest, CancelsPendingModeWhenResetsAreNoLongerAllowed) {
  Start(ResetRule::kNode);
  Run();
  Apply("1", {{0, "3g.20gb@4"}, {1, "3g.20gb@4"}});
  ASSERT_TRUE(boards_->Info(0).mig_pending);
  Start(ResetRule::kNever);
  Run(seconds(60));
  EXPECT_FALSE(boards_->Info(0).mig_pending) << "a reboot would change a GPU in use";
  EXPECT_FALSE(boards_->Info(1).mig_pending);
  EXPECT_EQ(RebootCondition(), "False NoRebootPending ");
  Apply("2", {{0, "gpu@0"}});
  EXPECT_EQ(Annotation("status-layout-0"), "gpu@0:free");
  EXPECT_EQ(resets_, 0);
}

// If an agent crashed before it could reset the GPU, no condition shows the pending mode.
TEST_F(AgentResetTest, CancelsPendingModeLeftByCrashedAgent) {
  ASSERT_FALSE(boards_->EnableMig(0).ok());
  ASSERT_TRUE(boards_->Info(0).mig_pending);
  Start(ResetRule::kNever);
  Run(seconds(60));
  EXPECT_FALSE(boards_->Info(0).mig_pending);
  EXPECT_EQ(RebootCondition(), "");
  ASSERT_FALSE(boards_->EnableMig(1).ok());
  Run(seconds(60));
  EXPECT_TRUE(boards_->Info(1).mig_pending) << "another tool set it and will reboot the node";
}

TEST_F(AgentResetTest, ReportsAndRetriesRefusedCancellationOfPendingMode) {
  int tries = 0;
  fault_ = [&](const SimAttempt& attempt) {
    if (attempt.kind != SimAttempt::Kind::kTakeBack) return SimFault::kNone;
    ++tries;
    return SimFault::kBusy;
  };
  ASSERT_FALSE(boards_->EnableMig(0).ok());
  Start(ResetRule::kNever);
  Run(std::chrono::minutes(5));
  EXPECT_EQ(RebootCondition(),
            "True MigModePending GPU 0 takes MIG mode when the node is rebooted");
  EXPECT_THAT(EventReasons(api_), Contains("DeviceOperationFailed gpu-1"));
  EXPECT_GE(tries, 5);
  EXPECT_LE(tries, 20) << "with growing pauses";
  fault_ = nullptr;
  Run(std::chrono::minutes(2));
  EXPECT_FALSE(boards_->Info(0).mig_pending);
  EXPECT_EQ(RebootCondition(), "False NoRebootPending ");
}

TEST_F(AgentResetTest, RetriesCancellationOfPendingModeWhileGpuIsInUse) {
  fault_ = [](const SimAttempt& attempt) {
    return attempt.kind == SimAttempt::Kind::kTakeBack ? SimFault::kBusy : SimFault::kNone;
  };
  ASSERT_FALSE(boards_->EnableMig(0).ok());
  ASSERT_FALSE(boards_->EnableMig(1).ok());
  Run();
  Apply("1", {{0, "gpu@0"}, {1, "10gb@0"}});
  ASSERT_EQ(Annotation("status-layout-0"), "gpu@0:free");
  ASSERT_EQ(Annotation("status-layout-1"), "10gb@0:free");
  Hold("whole", "gpu", Uuid(0));
  Hold("share", "gpu-10gb", Uuid(1) + "::10::0");
  Run(seconds(60));
  EXPECT_TRUE(boards_->Info(0).mig_pending);
  fault_ = nullptr;
  Run(std::chrono::minutes(2));
  EXPECT_FALSE(boards_->Info(0).mig_pending) << "a reboot would change the pod's GPU";
  EXPECT_FALSE(boards_->Info(1).mig_pending);
  EXPECT_THAT(Layouts(), ElementsAre("gpu@0:used", "10gb@0:used"));
}

TEST_F(AgentResetTest, KeepsTimeSlicesWhenGpuMayBePartitionedAgain) {
  Use("A30");
  Start(ResetRule::kNever);
  Run();
  Apply("1", {{0, "shared@0,shared@3"}});
  ASSERT_EQ(Annotation("status-layout-0"), "shared@0:free,shared@3:free");
  EXPECT_EQ(Annotation("status-model-0"), "GPU-24GB-4+GPU+TIME-4");
  Hold("turn", "gpu.shared", Uuid(0) + "::time::3");
  Start(ResetRule::kGpu);
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "shared@0:free,shared@3:used");
  EXPECT_EQ(Annotation("status-model-0"), "A30+GPU+TIME-4");
  End("turn");
  Apply("2", {{0, "2g.12gb@2"}}, seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "2g.12gb@2:free");
}

// MIG mode was enabled by a reboot, while pods still hold shares of the GPU.
TEST_F(AgentResetTest, DoesNotRequestRebootAgainWhilePending) {
  Start(ResetRule::kNode);
  Run();
  Apply("1", {{0, "10gb@0"}});
  Hold("share", "gpu-10gb", Uuid(0) + "::10::0");
  Run();
  ASSERT_FALSE(boards_->EnableMig(0).ok());  // another tool
  boards_->Reboot();
  Start(ResetRule::kNode);
  Run(seconds(60));
  EXPECT_FALSE(boards_->Info(0).mig_pending);
  EXPECT_EQ(RebootCondition(),
            "True MigModePending GPU 0 leaves MIG mode when the node is rebooted");
  boards_->Reboot();
  Start(ResetRule::kNode);
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "10gb@0:used");
}

// The agent crashes before and after each step of a mode change.
TEST_F(AgentResetTest, ConvergesFromAnyState) {
  const std::vector<std::string> layouts = {"gpu@0", "shared@0,shared@2", "7g.40gb@0", "1g.5gb@0",
                                            "10gb@0,20gb@1"};
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    fault_ = [&](const SimAttempt& attempt) {
      if (attempt.kind != SimAttempt::Kind::kReset) return SimFault::kNone;
      const uint64_t draw = random.Below(4);
      if (draw == 0) return SimFault::kFails;
      return draw == 1 ? SimFault::kLateAnswer : SimFault::kNone;
    };
    for (int step = 0; step < 6; ++step) {
      const auto layout = [&] { return layouts[random.Below(layouts.size())]; };
      Apply(std::to_string(1000 * (seed + 1) + static_cast<uint64_t>(step)),
            {{0, layout()}, {1, layout()}}, milliseconds(random.Below(40'000)));
      const bool reboots = random.Chance(0.2);
      if (reboots) boards_->Reboot();
      if (reboots || random.Chance(0.4)) Start(ResetRule::kGpu);
    }
    fault_ = nullptr;
    Start(ResetRule::kGpu);
    Apply(std::to_string(1000 * (seed + 1) + 999), {{0, "3g.20gb@4"}, {1, "gpu@0"}}, seconds(300));
    EXPECT_THAT(Layouts(), ElementsAre("3g.20gb@4:free", "gpu@0:free"));
    EXPECT_FALSE(boards_->Info(1).mig_pending);
    EXPECT_EQ(boards_->Info(1).compute_mode, device::ComputeMode::kDefault);
  }
}

}  // namespace
}  // namespace nos::agent
