// GPUs that cannot be read for a while.
#include "agent/loop/use_fixture_test.h"

namespace nos::agent {
namespace {

class AnUnreadableGpuTest : public AgentUseTest {
 protected:
  // The first slice's state in the kubelet: "healthy", "unhealthy" or "".
  std::string First() const {
    for (const auto& device : kubelet_.offer()) {
      if (device.device_id == first_.uuid) return device.healthy ? "healthy" : "unhealthy";
    }
    return "";
  }
};

TEST_F(AnUnreadableGpuTest, KeepsLastKnownStateForAMoment) {
  Bind("a", "1g.5gb");
  gpus_.Lose(0);
  Apply("7", {{0, "1g.5gb@0"}}, seconds(4));
  EXPECT_EQ(First(), "healthy") << "a pod is being admitted";
  EXPECT_EQ(Annotation("status-partitioning-plan"), "");
  gpus_.Restore(0);
  ASSERT_TRUE(kubelet_.Admit("ml", "a", kSlice).ok());
  Admitted("a");
  Run();
  EXPECT_EQ(First(), "healthy");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7");
}

TEST_F(AnUnreadableGpuTest, IsOfferedAsUnhealthyAfterPatience) {
  gpus_.Lose(0);
  Apply("7", {{0, "1g.5gb@0"}}, seconds(21));
  EXPECT_EQ(First(), "unhealthy");
  EXPECT_EQ(Allocatable("1g.5gb"), 0);
  EXPECT_EQ(Annotation("status-partitioning-plan"), "7") << "the plan ends without it";
  gpus_.Restore(0);
  Run(seconds(11));
  EXPECT_EQ(First(), "healthy");
}

TEST_F(AnUnreadableGpuTest, DoesNotKeepInstanceThatWasDestroyedBefore) {
  fault_ = [&](const device::SimAttempt& attempt) {
    if (attempt.kind == device::SimAttempt::Kind::kDestroy) gpus_.Lose(0);
    return device::SimFault::kNone;
  };
  kubelet_.on_offer = [&, report = kubelet_.on_offer] {
    EXPECT_TRUE(destroyed_ == 0 || First().empty());
    report();
  };
  Apply("7", {{0, "1g.5gb@1"}}, seconds(21));
  EXPECT_EQ(destroyed_, 1);
  EXPECT_EQ(First(), "");
}

TEST_F(AnUnreadableGpuTest, IsOfferedAsUnhealthyAtOnceToNvidiasPlugin) {
  PluginThatCannotWithdraw();
  gpus_.Lose(0);
  Annotate("something", "new");
  Run(seconds(1));
  EXPECT_EQ(First(), "unhealthy") << "the plugin may or may not know it";
}

// "GPU-a" was GPU 0. It has another index now because an unreadable GPU was inserted before it.
TEST(KeepUnreadable, IgnoresLastStateOfAnotherGpuWithTheSameIndex) {
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("A100-40GB");
  device::GpuInstance slice;
  slice.uuid = "MIG-a";
  LastRead last{{0, {{0, &model, true, {slice}, "GPU-a"}, Time()}}};
  NodeDevices devices;
  devices.gpus = {{1, &model, true, {slice}, "GPU-a"}};
  devices.unreadable = {{0, nullptr, true, {}, ""}};
  EXPECT_FALSE(KeepUnreadable(devices, last, true, seconds(5), Time(seconds(60))));
  EXPECT_TRUE(devices.unreadable.front().instances.empty());
  EXPECT_FALSE(devices.unhealthy.contains("MIG-a"));
  EXPECT_FALSE(last.contains(0));
}

// The kubelet lists the part and takes the instance for free.
TEST(KeepUnreadable, HoldsInstanceOfWhichAPodHoldsAPart) {
  const gpu::Model& model = *gpu::Catalogue::Builtin().FindByName("H100-80GB");
  const device::GpuInstance divided{0, 1, "MIG-a", "3g.40gb", 9, 0, 4};
  const device::GpuInstance whole{0, 2, "MIG-b", "3g.40gb", 9, 4, 4};
  LastRead last{{0, {{0, &model, true, {divided, whole}, "GPU-a"}, Time(seconds(58))}}};
  NodeDevices devices;
  devices.unreadable = {{0, nullptr, true, {}, "GPU-a"}};
  devices.holders = {{"MIG-a::mps4::1", "ml/a"}};
  EXPECT_TRUE(KeepUnreadable(devices, last, true, seconds(5), Time(seconds(60))));
  EXPECT_EQ(devices.holders["MIG-a"], "ml/a");
  EXPECT_TRUE(devices.unhealthy.contains("MIG-a")) << "no other pod may get it";
  EXPECT_FALSE(devices.unhealthy.contains("MIG-b"));
}

}  // namespace
}  // namespace nos::agent
