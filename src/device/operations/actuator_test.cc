#include "device/actuator.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "device/sim_gpus.h"
#include "gpu/shares.h"

namespace nos::device {
namespace {

const gpu::Model& Model(std::string_view name) {
  return *gpu::Catalogue::Builtin().FindByName(name);
}

// One simulated node and the loop of an agent over it.
class ActuatorTest : public testing::Test {
 protected:
  explicit ActuatorTest(std::string_view model = "A100-40GB", int count = 2)
      : model_(Model(model)), gpus_(std::vector<SimGpuSpec>(count, {&model_}), "n", Hooks()) {}

  SimHooks Hooks() {
    SimHooks hooks;
    hooks.fault = [this](const SimAttempt&) { return fault_; };
    hooks.on_destroy = [this](const GpuInstance& instance) {
      EXPECT_FALSE(used_.contains(instance.uuid)) << "a used instance was destroyed";
      ++destroyed_;
    };
    return hooks;
  }

  void Want(int gpu, const std::vector<std::string>& placements) {
    Target target{gpu, {}};
    for (const auto& text : placements) {
      target.placements.push_back(model_.ParsePlacement(text).value());
    }
    targets_.push_back(target);
  }
  GpuInstance Place(int gpu, const std::string& profile, uint8_t start, bool used = false) {
    GpuInstance instance = gpus_.Place(gpu, profile, start).value();
    if (used) used_.insert(instance.uuid);
    return instance;
  }
  Progress Next(const std::function<bool(const Operation&)>& deferred = {}) {
    return NextOperation(targets_, Observe(), used_, deferred);
  }
  std::vector<ObservedGpu> Observe() {
    std::vector<ObservedGpu> observed;
    const auto infos = gpus_.ListGpus();
    for (const GpuInfo& info : *infos) {
      auto instances = gpus_.ListInstances(info.index);
      observed.push_back({info.index, &model_, info.mig_enabled,
                          instances.ok() ? *instances : std::vector<GpuInstance>{}});
    }
    return observed;
  }
  // Applies operations until none is left; returns the obstacles.
  std::vector<Obstacle> Converge(int limit = 60) {
    for (int i = 0; i < limit; ++i) {
      const Progress progress = Next();
      if (!progress.next) return progress.obstacles;
      log_.push_back(progress.next->ToString());
      (void)Apply(*progress.next, gpus_);
    }
    ADD_FAILURE() << "does not converge";
    return {};
  }
  std::set<std::string> Layout(int gpu) {
    std::set<std::string> names;
    for (const GpuInstance& instance : gpus_.Truth(gpu)) {
      names.insert(instance.profile + "@" + std::to_string(instance.start) +
                   (instance.complete ? "" : "!"));
    }
    return names;
  }

  const gpu::Model& model_;
  SimFault fault_ = SimFault::kNone;
  std::set<std::string> used_;
  int destroyed_ = 0;
  SimGpus gpus_;
  std::vector<Target> targets_;
  std::vector<std::string> log_;
};

using Names = std::set<std::string>;

TEST_F(ActuatorTest, CreatesInstancesAtExactStartsInAnyOrder) {
  // Without exact placements the driver would put a 1g where the 2g has to start (MIG User Guide,
  // placement rules).
  Want(0, {"1g.5gb@0", "1g.5gb@1", "2g.10gb@2", "3g.20gb@4"});
  EXPECT_TRUE(Converge().empty());
  EXPECT_EQ(Layout(0), (Names{"1g.5gb@0", "1g.5gb@1", "2g.10gb@2", "3g.20gb@4"}));
}

TEST_F(ActuatorTest, DestroysOnlyFreeUnwantedInstances) {
  Place(0, "1g.5gb", 0);
  Place(0, "1g.5gb", 6);
  Place(1, "7g.40gb", 0);
  Want(0, {"1g.5gb@6", "4g.20gb@0"});
  EXPECT_TRUE(Converge().empty());
  EXPECT_EQ(Layout(0), (Names{"1g.5gb@6", "4g.20gb@0"}));
  EXPECT_EQ(Layout(1), Names{"7g.40gb@0"}) << "no target: left as it is";
  EXPECT_EQ(destroyed_, 1);
}

TEST_F(ActuatorTest, EmptyTargetDestroysAllButUsedInstances) {
  Place(0, "1g.5gb", 0, true);
  Place(0, "1g.5gb", 1);
  Want(0, {});
  const auto obstacles = Converge();
  EXPECT_EQ(Layout(0), Names{"1g.5gb@0"});
  ASSERT_EQ(obstacles.size(), 1u);
  EXPECT_EQ(obstacles[0].code, "InUse");
}

TEST_F(ActuatorTest, AppliesPossiblePartsAndReportsObstacles) {
  const GpuInstance used = Place(0, "1g.5gb", 5, true);
  Want(0, {"3g.20gb@4", "2g.10gb@0"});
  Want(1, {"7g.40gb@0"});
  const auto obstacles = Converge();
  EXPECT_EQ(Layout(0), (Names{"1g.5gb@5", "2g.10gb@0"}));
  EXPECT_EQ(Layout(1), Names{"7g.40gb@0"});
  ASSERT_EQ(obstacles.size(), 2u);
  EXPECT_EQ(obstacles[0].placement, "3g.20gb@4");
  EXPECT_EQ(obstacles[0].code, "InUse");
  EXPECT_NE(obstacles[0].message.find(used.uuid), std::string::npos) << obstacles[0].message;
  used_.clear();  // the pod ends; no further input is needed
  EXPECT_TRUE(Converge().empty());
  EXPECT_EQ(Layout(0), (Names{"3g.20gb@4", "2g.10gb@0"}));
}

TEST_F(ActuatorTest, CreatesBeforeDestroying) {
  Place(0, "1g.5gb", 6);
  Want(0, {"4g.20gb@0"});
  Converge();
  EXPECT_EQ(log_,
            (std::vector<std::string>{"create 4g.20gb@0 on GPU 0", "destroy 1g.5gb@6 on GPU 0"}));
}

// Simulates changed indexes, or an incomplete instance that another tool completed.
TEST_F(ActuatorTest, DoesNotDestroyAnotherInstanceWithSameId) {
  fault_ = SimFault::kCrashBetween;
  (void)gpus_.Create(0, "1g.5gb", 0);
  fault_ = SimFault::kNone;
  Want(0, {"1g.5gb@0"});
  const Progress repair = Next();
  ASSERT_TRUE(repair.next && repair.next->uuid.empty());
  ASSERT_TRUE(gpus_.Destroy(0, repair.next->instance_id).ok());
  const GpuInstance held = Place(0, "1g.5gb", 0, true);
  ASSERT_EQ(held.id, repair.next->instance_id);
  EXPECT_EQ(Apply(*repair.next, gpus_).code(), Code::kNotFound);
  EXPECT_EQ(Layout(0), Names{"1g.5gb@0"});
}

TEST_F(ActuatorTest, RemovesIncompleteInstances) {
  Want(0, {"3g.20gb@4"});
  fault_ = SimFault::kCrashBetween;
  ASSERT_FALSE(Apply(*Next().next, gpus_).ok());
  EXPECT_EQ(Layout(0), Names{"3g.20gb@4!"});
  fault_ = SimFault::kNone;
  EXPECT_TRUE(Converge().empty());
  EXPECT_EQ(Layout(0), Names{"3g.20gb@4"});
  fault_ = SimFault::kCrashBetween;
  targets_.clear();
  Want(0, {});
  ASSERT_FALSE(Apply(*Next().next, gpus_).ok());
  fault_ = SimFault::kNone;
  EXPECT_TRUE(Converge().empty());
  EXPECT_EQ(Layout(0), Names{});
}

TEST_F(ActuatorTest, DeferredOperationsDoNotHoldUpOthers) {
  Place(0, "1g.5gb", 0);
  Want(0, {"7g.40gb@0"});
  Want(1, {"7g.40gb@0"});
  const auto deferred = [](const Operation& operation) { return operation.gpu == 0; };
  EXPECT_EQ(Next(deferred).next->ToString(), "create 7g.40gb@0 on GPU 1");
  Apply(*Next(deferred).next, gpus_).ok();
  const Progress stuck = Next(deferred);
  EXPECT_FALSE(stuck.next);
  ASSERT_EQ(stuck.obstacles.size(), 2u);
  EXPECT_EQ(stuck.obstacles[0].code, "Deferred");
}

TEST_F(ActuatorTest, ReportsImpossibleTarget) {
  Want(0, {"4g.20gb@0", "1g.5gb@2"});
  Want(7, {"1g.5gb@0"});
  const auto obstacles = Converge();
  ASSERT_EQ(obstacles.size(), 2u);
  EXPECT_EQ(obstacles[0].code, "Illegal");
  EXPECT_EQ(obstacles[1].code, "NoSuchGpu");
}

TEST_F(ActuatorTest, LeavesGpuWithForeignInstanceAlone) {
  std::vector<ObservedGpu> gpus = Observe();
  gpus[0].instances.push_back({0, 9, "MIG-x", "5g.30gb", 77, 0, 6, true});
  Want(0, {"7g.40gb@0"});
  const Progress progress = NextOperation(targets_, gpus, used_);
  EXPECT_FALSE(progress.next);
  ASSERT_EQ(progress.obstacles.size(), 1u);
  EXPECT_EQ(progress.obstacles[0].code, "Foreign");
}

TEST_F(ActuatorTest, UnwantedListsInstancesToWithdraw) {
  Place(0, "1g.5gb", 0, true);
  Place(0, "1g.5gb", 1);
  Place(0, "1g.5gb", 6);
  Want(0, {"1g.5gb@6"});
  const auto unwanted = Unwanted(targets_, Observe(), used_);
  ASSERT_EQ(unwanted.size(), 1u);
  EXPECT_EQ(unwanted[0].start, 1);
}

class HopperTest : public ActuatorTest {
 protected:
  HopperTest() : ActuatorTest("H100-80GB", 1) {}
};

TEST_F(HopperTest, RestoresPartitioningAfterReboot) {
  Want(0, {"3g.40gb@4", "1g.10gb@0"});
  Converge();
  gpus_.Reboot();
  EXPECT_FALSE(gpus_.ListGpus()->front().mig_enabled);
  EXPECT_TRUE(Converge().empty());
  EXPECT_EQ(Layout(0), (Names{"3g.40gb@4", "1g.10gb@0"}));
}

// From any state to any legal target, with injected faults, keeping used instances.
TEST_F(ActuatorTest, ConvergesFromRandomStatesWithFaults) {
  Random random(7);
  const gpu::LayoutTable& table = model_.layouts();
  const auto layout = [&] { return static_cast<gpu::LayoutId>(random.Below(table.size())); };
  const auto placements = [&](gpu::LayoutId id) {
    std::vector<gpu::Placement> all;
    for (size_t i = 0; i < table.placements().size(); ++i) {
      if (table.Members(id) >> i & 1) all.push_back(table.placements()[i]);
    }
    return all;
  };
  for (int round = 0; round < 200; ++round) {
    gpus_.Reboot();
    used_.clear();
    for (const gpu::Placement& p : placements(layout())) {
      Place(0, model_.profile(p.profile).name, p.start, random.Chance(0.3));
    }
    targets_ = {{0, placements(layout())}};
    for (int step = 0; step < 8; ++step) {
      fault_ = static_cast<SimFault>(random.Below(6));  // all faults except a lost GPU
      const Progress progress = Next();
      if (progress.next) (void)Apply(*progress.next, gpus_);
    }
    fault_ = SimFault::kNone;
    const auto obstacles = Converge();
    for (const Obstacle& obstacle : obstacles) EXPECT_EQ(obstacle.code, "InUse");
    if (used_.empty()) {
      EXPECT_TRUE(obstacles.empty());
    }
  }
}

// A GPU of a hybrid node without MIG mode, whose mode changes only with a reset.
TEST(ActuatorModes, CancelsPendingModeIfTargetWantsPresentMode) {
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindSharingModes("A100-40GB+GPU+TIME-4");
  ObservedGpu gpu{0, &model, true, {}, "GPU-0"};
  gpu.mode = GpuMode::kPlain;
  gpu.mig_after_reset = true;
  const auto next = [&](const char* placement, const std::set<std::string>& used = {}) {
    const std::vector<Target> targets{{0, {model.ParsePlacement(placement).value()}}};
    const Progress progress = NextOperation(targets, std::vector<ObservedGpu>{gpu}, used);
    return progress.next ? progress.next->ToString() : "nothing";
  };
  EXPECT_EQ(next("gpu@0"), "disable MIG on GPU 0");
  EXPECT_EQ(next("3g.20gb@4"), "enable MIG on GPU 0");
  EXPECT_EQ(next("3g.20gb@4", {"GPU-0"}), "nothing") << "it is used";
  EXPECT_EQ(next("gpu@0", {"GPU-0"}), "disable MIG on GPU 0") << "as which it goes on";
  const gpu::Model& shares = gpu::SharesOf(39);
  const std::vector<Target> shared{{0, {shares.ParsePlacement("10gb@0").value()}, &shares}};
  const Progress before = NextOperation(shared, std::vector<ObservedGpu>{gpu}, {});
  ASSERT_TRUE(before.next);
  EXPECT_EQ(before.next->ToString(), "disable MIG on GPU 0") << "before a daemon has it open";
  gpu.mig_after_reset = false;
  EXPECT_EQ(next("gpu@0"), "create gpu@0 on GPU 0");
  gpu.mode = GpuMode::kMig;
  EXPECT_EQ(next("3g.20gb@4"), "enable MIG on GPU 0") << "so that it stays on";
}

}  // namespace
}  // namespace nos::device
