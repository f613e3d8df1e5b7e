#include "device/sim_gpus.h"

#include <gtest/gtest.h>

namespace nos::device {
namespace {

using std::chrono::milliseconds;

const gpu::Model& A100() { return *gpu::Catalogue::Builtin().FindByName("A100-40GB"); }

SimGpus Node(SimHooks hooks = {}, const std::string& name = "n") {
  return SimGpus({{&A100(), "NVIDIA A100-SXM4-40GB"}}, name, std::move(hooks));
}

TEST(SimGpus, RefusesImpossiblePlacements) {
  SimGpus gpus = Node();
  ASSERT_TRUE(gpus.Create(0, "3g.20gb", 4).ok());
  EXPECT_EQ(gpus.Create(0, "1g.5gb", 5).status().code(), Code::kExhausted);
  EXPECT_EQ(gpus.Create(0, "3g.20gb", 4).status().code(), Code::kExhausted);
  EXPECT_EQ(gpus.Create(0, "3g.20gb", 2).status().code(), Code::kInvalid);
  EXPECT_EQ(gpus.Create(0, "9g.90gb", 0).status().code(), Code::kInvalid);
  EXPECT_EQ(gpus.Create(3, "1g.5gb", 0).status().code(), Code::kNotFound);
  EXPECT_EQ(gpus.Destroy(0, 99).code(), Code::kNotFound);
}

TEST(SimGpus, IdsAreIndependentOfStartsAndUuidsRepeatWithIds) {
  SimGpus gpus = Node();
  const GpuInstance first = gpus.Create(0, "1g.5gb", 6).value();
  const GpuInstance second = gpus.Create(0, "1g.5gb", 0).value();
  EXPECT_LT(first.id, second.id);
  ASSERT_EQ(first.uuid.size(), 40u) << first.uuid;
  EXPECT_EQ(first.uuid.substr(0, 4), "MIG-");
  EXPECT_EQ(first.uuid[18], '5') << "a name-based UUID, as drivers give: " << first.uuid;
  ASSERT_TRUE(gpus.Destroy(0, first.id).ok());
  EXPECT_EQ(gpus.Create(0, "2g.10gb", 2)->uuid, first.uuid) << "same GPU, GI and CI: same UUID";
  EXPECT_NE(Node({}, "m").Create(0, "1g.5gb", 6)->uuid, first.uuid);
}

TEST(SimGpus, ReportsDurationAndRefusesToDestroyHeldInstance) {
  Duration spent{};
  std::string held;
  int destroyed = 0;
  SimHooks hooks;
  hooks.spend = [&](Duration d) { spent += d; };
  hooks.held = [&](const std::string& uuid) { return uuid == held; };
  hooks.on_destroy = [&](const GpuInstance&) { ++destroyed; };
  SimGpus gpus = Node(hooks);
  const GpuInstance instance = gpus.Create(0, "1g.5gb", 0).value();
  EXPECT_EQ(spent, milliseconds(350));
  held = instance.uuid;
  EXPECT_EQ(gpus.Destroy(0, instance.id).code(), Code::kUnavailable);
  EXPECT_EQ(destroyed, 0);
  held.clear();
  EXPECT_TRUE(gpus.Destroy(0, instance.id).ok());
  EXPECT_EQ(destroyed, 1);
}

TEST(SimGpus, InjectsFaults) {
  SimFault fault = SimFault::kNone;
  SimHooks hooks;
  hooks.fault = [&](const SimAttempt&) { return fault; };
  SimGpus gpus = Node(hooks);
  fault = SimFault::kTimeout;
  EXPECT_EQ(gpus.Create(0, "1g.5gb", 0).status().code(), Code::kDeadline);
  EXPECT_TRUE(gpus.Truth(0).empty());
  fault = SimFault::kLateAnswer;
  EXPECT_EQ(gpus.Create(0, "1g.5gb", 0).status().code(), Code::kDeadline);
  EXPECT_EQ(gpus.Truth(0).size(), 1u);
  fault = SimFault::kCrashBetween;
  EXPECT_FALSE(gpus.Create(0, "1g.5gb", 1).ok());
  EXPECT_FALSE(gpus.Truth(0).back().complete);
  EXPECT_TRUE(gpus.Truth(0).back().uuid.empty());
  fault = SimFault::kLost;
  EXPECT_EQ(gpus.Create(0, "1g.5gb", 2).status().code(), Code::kUnavailable);
  fault = SimFault::kNone;
  EXPECT_EQ(gpus.ListInstances(0).status().code(), Code::kUnavailable);
  gpus.Restore(0);
  EXPECT_TRUE(gpus.ListInstances(0).ok());
}

TEST(SimGpus, RebootRemovesInstancesAndHopperMigMode) {
  SimGpus ampere = Node();
  ASSERT_TRUE(ampere.Create(0, "1g.5gb", 0).ok());
  ampere.Reboot();
  EXPECT_TRUE(ampere.ListInstances(0)->empty());
  const gpu::Model& h100 = *gpu::Catalogue::Builtin().FindByName("H100-80GB");
  SimGpus hopper({{&h100}}, "n");
  hopper.Reboot();
  EXPECT_EQ(hopper.ListInstances(0).status().code(), Code::kUnimplemented);
  EXPECT_TRUE(hopper.EnableMig(0).ok());
  EXPECT_TRUE(hopper.ListInstances(0).ok());
}

TEST(SimGpus, AmpereNeedsResetToEnableMig) {
  SimGpuSpec spec{&A100()};
  spec.mig_enabled = false;
  SimGpus gpus({spec}, "n");
  EXPECT_EQ(gpus.EnableMig(0).code(), Code::kPermission);
}

TEST(SimGpus, ResetActivatesPendingMode) {
  SimGpuSpec spec{&A100()};
  spec.mig_enabled = false;
  Duration spent{};
  std::string held;
  SimHooks hooks;
  hooks.spend = [&](Duration time) { spent += time; };
  hooks.held = [&](const std::string& uuid) { return uuid == held; };
  SimGpus gpus({spec, spec}, "n", hooks);
  EXPECT_EQ(gpus.EnableMig(0).code(), Code::kPermission);
  ASSERT_TRUE(gpus.SetComputeMode(0, ComputeMode::kExclusiveProcess).ok());
  held = gpus.Info(0).uuid;
  EXPECT_EQ(gpus.ResetGpu(0).code(), Code::kUnavailable);
  held.clear();
  spent = {};
  EXPECT_TRUE(gpus.ResetGpu(0).ok());
  EXPECT_EQ(spent, SimLatency{}.reset);
  EXPECT_TRUE(gpus.Info(0).mig_enabled);
  EXPECT_EQ(gpus.Info(0).compute_mode, ComputeMode::kDefault);
  EXPECT_FALSE(gpus.Info(1).mig_enabled);
  ASSERT_TRUE(gpus.Create(0, "1g.5gb", 0).ok());
  EXPECT_EQ(gpus.ResetGpu(0).code(), Code::kUnavailable) << "it has instances";
  EXPECT_EQ(gpus.EnableMig(1).code(), Code::kPermission);
  EXPECT_TRUE(gpus.DisableMig(1).ok()) << "taken back";
  gpus.Reboot();
  EXPECT_TRUE(gpus.Info(0).mig_enabled);
  EXPECT_FALSE(gpus.Info(1).mig_enabled);
}

TEST(SimGpus, LoadFollowsHeldInstances) {
  std::string held;
  SimHooks hooks;
  hooks.busy = [&](const std::string& uuid) { return uuid == held; };
  SimGpus gpus = Node(hooks), again = Node(hooks);
  const GpuInstance busy = gpus.Create(0, "3g.20gb", 4).value();
  const GpuInstance idle = gpus.Create(0, "1g.5gb", 0).value();
  (void)again.Create(0, "3g.20gb", 4);
  held = busy.uuid;
  for (int turn = 0; turn < 100; ++turn) {
    const Readings whole = gpus.MeasureGpu(0);
    const double load = *gpus.MeasureInstance(busy).Find(metric::kUtilization);
    EXPECT_GT(load, 0.0);
    EXPECT_LE(load, 1.0);
    EXPECT_DOUBLE_EQ(*whole.Find(metric::kUtilization), load * 4 / 8);
    EXPECT_EQ(gpus.MeasureInstance(idle).Find(metric::kUtilization), 0);
    EXPECT_EQ(again.MeasureGpu(0).metrics, whole.metrics) << "deterministic";
  }
  held.clear();
  const Readings rest = gpus.MeasureGpu(0);
  EXPECT_EQ(rest.Find(metric::kUtilization), 0);
  EXPECT_LT(*rest.Find(metric::kPower), 100);
  gpus.Lose(0);
  EXPECT_TRUE(gpus.MeasureGpu(0).metrics.empty());
}

TEST(SimGpus, DisablesMigWithoutResetIfEmpty) {
  const gpu::Model& h200 = *gpu::Catalogue::Builtin().FindByName("H200-141GB");
  SimGpus gpus({{&A100()}, {&h200}, {&h200}}, "n");
  EXPECT_EQ(gpus.DisableMig(0).code(), Code::kPermission);
  ASSERT_TRUE(gpus.ListGpus()->at(0).mig_enabled);
  EXPECT_FALSE(gpus.ListGpus()->at(0).mig_pending);
  ASSERT_TRUE(gpus.Create(1, "1g.18gb", 0).ok());
  EXPECT_EQ(gpus.DisableMig(1).code(), Code::kUnavailable);
  EXPECT_TRUE(gpus.DisableMig(2).ok());
  EXPECT_TRUE(gpus.DisableMig(2).ok()) << "again";
  EXPECT_EQ(gpus.ListInstances(2).status().code(), Code::kUnimplemented);
  gpus.Reboot();
  EXPECT_FALSE(gpus.ListGpus()->at(0).mig_enabled) << "as it was told to";
  EXPECT_FALSE(gpus.ListGpus()->at(1).mig_enabled) << "Hopper forgets";
}

TEST(SimGpus, RebootResetsComputeMode) {
  SimGpus gpus = Node();
  EXPECT_EQ(gpus.ListGpus()->at(0).compute_mode, ComputeMode::kDefault);
  ASSERT_TRUE(gpus.SetComputeMode(0, ComputeMode::kExclusiveProcess).ok());
  EXPECT_EQ(gpus.ListGpus()->at(0).compute_mode, ComputeMode::kExclusiveProcess);
  EXPECT_EQ(gpus.SetComputeMode(0, ComputeMode::kOther).code(), Code::kInvalid);
  gpus.Reboot();
  EXPECT_EQ(gpus.ListGpus()->at(0).compute_mode, ComputeMode::kDefault);
}

}  // namespace
}  // namespace nos::device
