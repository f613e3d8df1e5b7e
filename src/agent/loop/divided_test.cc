// Hybrid nodes whose MIG instances are divided by MPS.
#include <gmock/gmock.h>

#include "agent/loop/fixture_test.h"
#include "agent/node/divided_instances.h"
#include "device/mig_parts.h"
#include "device/mps_gpus.h"
#include "device/plain_gpus.h"

namespace nos::agent {
namespace {

using ::testing::Contains;
using ::testing::SizeIs;

const std::vector<gpu::InstancePart> kParts = {{"3g.40gb", 2}, {"3g.40gb", 4}};
constexpr const char* kQuarter = "mig-3g.40gb.mps4";

class AgentDividedTest : public AgentTest {
 protected:
  AgentDividedTest() {
    Label("hybrid");
    Start();
  }

  // Starts a new agent, which knows only what driver and kubelet report.
  void Start() {
    runner_.reset();
    parts_ = std::make_unique<device::MigParts>(boards_, gpu::Catalogue::Builtin(), may_have_);
    shares_ = std::make_unique<device::MpsGpus>(*parts_);
    plain_ = std::make_unique<device::PlainGpus>(*shares_);
    Restart(*plain_, {.mps = true, .whole = true, .time_slices = 4, .parts = may_have_});
  }
  // True if the kubelet may give the device to a pod.
  bool MayBeGiven(const std::string& id) {
    return std::ranges::any_of(kubelet_.offer(), [&](const kubelet::OfferedDevice& device) {
      return device.device_id == id && device.healthy;
    });
  }
  // UUID of the driver's first instance, and ids of its parts.
  std::string Mig(int gpu) { return boards_.Truth(gpu).at(0).uuid; }
  std::string Part(int gpu, int count, int number) {
    return device::MigPartId({Mig(gpu), count, number});
  }

  device::SimHooks BoardHooks() {
    device::SimHooks hooks = Hooks();
    hooks.on_destroy = [this](const device::GpuInstance& instance) {
      for (const int count : {2, 4}) {
        for (int number = 0; number < count; ++number) {
          const std::string id = device::MigPartId({instance.uuid, count, number});
          EXPECT_FALSE(kubelet_.Holds(id)) << "destroyed an instance with held parts";
        }
      }
      EXPECT_FALSE(kubelet_.Holds(instance.uuid)) << "destroyed a used instance";
    };
    return hooks;
  }

  device::SimGpus boards_{{{gpu::Catalogue::Builtin().FindByName("H100-80GB"), "", false},
                           {gpu::Catalogue::Builtin().FindByName("H100-80GB"), "", false}},
                          kNode,
                          BoardHooks()};
  std::vector<gpu::InstancePart> may_have_ = kParts;
  std::unique_ptr<device::MigParts> parts_;
  std::unique_ptr<device::MpsGpus> shares_;
  std::unique_ptr<device::PlainGpus> plain_;
};

TEST_F(AgentDividedTest, DividesInstancesIntoRequestedParts) {
  Run();
  EXPECT_EQ(Annotation("status-model-0"), "H100-80GB+3g.40gb.mps2+3g.40gb.mps4+GPU+TIME-4");
  Apply("1", {{0, "1g.10gb@0,3g.40gb.mps4@4,3g.40gb.mps4@6"}, {1, "gpu@0"}});
  EXPECT_EQ(Annotation("status-layout-0"),
            "1g.10gb@0:free,3g.40gb.mps4@4:free,3g.40gb.mps4@6:free");
  EXPECT_EQ(Annotation("status-gpu-0-3g.40gb.mps4-free"), "2");
  EXPECT_EQ(Annotation("status-partitioning-plan"), "1");
  EXPECT_EQ(Allocatable("3g.40gb.mps4"), 2);
  EXPECT_EQ(Allocatable("3g.40gb"), 0);
  EXPECT_THAT(boards_.Truth(0), SizeIs(2));
  Apply("2", {{0, "3g.40gb@4"}, {1, "3g.40gb.mps2@0"}});
  EXPECT_THAT(Layouts(), ::testing::ElementsAre("3g.40gb@4:free", "3g.40gb.mps2@0:free"));
  EXPECT_TRUE(kubelet_.Offers(Mig(0)));
  EXPECT_TRUE(kubelet_.Offers(Part(1, 2, 0)));
  EXPECT_FALSE(kubelet_.Offers(Mig(1)));
  Apply("3", {{1, "3g.40gb.mps4@1"}});
  EXPECT_EQ(Annotation("status-layout-1"), "3g.40gb.mps4@1:free");
}

TEST_F(AgentDividedTest, KeepsInstanceOfWhichAPodHoldsAPart) {
  Run();
  Apply("1", {{0, "3g.40gb.mps4@4,3g.40gb.mps4@5"}});
  const std::string mig = Mig(0);
  Hold("quarter", kQuarter, Part(0, 4, 1));
  Run();
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb.mps4@4:free,3g.40gb.mps4@5:used");
  EXPECT_EQ(Annotation("status-holders-0"), "3g.40gb.mps4@5=ml/quarter");
  Apply("2", {{0, "3g.40gb@4,4g.40gb@0"}}, seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "4g.40gb@0:free,3g.40gb.mps4@5:used");
  EXPECT_THAT(Obstacles(), Contains("InUse"));
  Apply("3", {{0, "3g.40gb.mps4@5,3g.40gb.mps4@7"}});
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb.mps4@5:used,3g.40gb.mps4@7:free");
  EXPECT_EQ(Mig(0), mig);
  End("quarter");
  Apply("4", {{0, "3g.40gb@4"}}, seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:free");
}

// A kubelet that has just started reports for a moment that no pod holds a device. The instance
// then looks undivided and free.
TEST_F(AgentDividedTest, DestroysNoInstanceWhileKubeletListsNoHolders) {
  Run();
  Apply("1", {{0, "3g.40gb.mps4@5"}});
  const std::string mig = Mig(0), part = Part(0, 4, 1);
  Hold("quarter", kQuarter, part);
  Run();
  kubelet_.Remove("ml", "quarter");
  Start();
  Apply("2", {{0, "1g.10gb@6"}});
  ASSERT_THAT(boards_.Truth(0), SizeIs(1));
  EXPECT_EQ(Mig(0), mig);
  for (const kubelet::OfferedDevice& device : kubelet_.offer()) {
    EXPECT_FALSE(device.device_id == mig && device.healthy) << "the kubelet must not hand it out";
  }
  Hold("quarter", kQuarter, part);
  Run(seconds(60));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb.mps4@5:used");
  End("quarter");
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "1g.10gb@6:free");
}

TEST_F(AgentDividedTest, LeavingHybridModeKeepsInstanceWithHeldPart) {
  Run();
  Apply("1", {{0, "3g.40gb.mps4@5"}});
  Hold("quarter", kQuarter, Part(0, 4, 1));
  Run();
  Label("mig");
  Apply("2", {{0, "7g.80gb@0"}}, seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:used") << "the whole instance";
  End("quarter");
  Run(seconds(120));
  EXPECT_EQ(Annotation("status-layout-0"), "7g.80gb@0:free");
}

// The kubelet knows a part under another id than its instance, so it takes the instance for free.
TEST_F(AgentDividedTest, OffersNoInstanceOfWhichAPodHoldsAPart) {
  for (const char* mode : {"mig", "mps", "none"}) {
    SCOPED_TRACE(mode);
    Label("hybrid");
    Run();
    Apply("1", {{0, "3g.40gb.mps4@5"}});
    const std::string mig = Mig(0);
    Hold("quarter", kQuarter, Part(0, 4, 1));
    Run();
    Label(mode);
    Run(seconds(60));
    EXPECT_FALSE(MayBeGiven(mig));
    EXPECT_EQ(Allocatable("3g.40gb"), 0);
    Start();
    Run(seconds(60));
    EXPECT_FALSE(MayBeGiven(mig)) << "a new agent must not offer it either";
    End("quarter");
    Run(seconds(60));
  }
}

TEST_F(AgentDividedTest, OffersNoInstanceWithHeldPartOfRemovedKind) {
  Run();
  Apply("1", {{0, "3g.40gb.mps4@5"}});
  const std::string mig = Mig(0);
  Hold("quarter", kQuarter, Part(0, 4, 1));
  for (const std::vector<gpu::InstancePart>& parts :
       {std::vector<gpu::InstancePart>{}, std::vector<gpu::InstancePart>{{"3g.40gb", 2}}}) {
    may_have_ = parts;
    Start();
    Run(seconds(60));
    EXPECT_EQ(Annotation("status-layout-0"), "3g.40gb@4:used");
    EXPECT_FALSE(MayBeGiven(mig));
    EXPECT_EQ(Mig(0), mig);
  }
  End("quarter");
  Apply("2", {{0, "3g.40gb@4"}});
  EXPECT_TRUE(MayBeGiven(mig));
}

// In every case no held device is lost, and the last plan is applied.
TEST_F(AgentDividedTest, ConvergesFromAnyState) {
  const std::vector<std::string> layouts = {"3g.40gb.mps4@0,3g.40gb.mps4@3",
                                            "3g.40gb.mps4@5",
                                            "3g.40gb.mps2@0,3g.40gb.mps2@1",
                                            "3g.40gb@4,3g.40gb@0",
                                            "4g.40gb@0,3g.40gb.mps4@4",
                                            "7g.80gb@0",
                                            "1g.10gb@0,3g.40gb.mps2@5",
                                            "gpu@0",
                                            "20gb@0"};
  Run();
  for (uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    RunAtRandom(
        random, seed, layouts,
        [](const auto& device) { return device.resource.starts_with("nvidia.com/mig-"); },
        [this] { Start(); });
    const std::string plan = std::to_string(1000 * (seed + 1) + 999);
    Apply(plan, {{0, "3g.40gb.mps4@1,3g.40gb.mps4@4"}, {1, "3g.40gb@4"}}, seconds(300));
    EXPECT_THAT(Layouts(), ::testing::ElementsAre("3g.40gb.mps4@1:free,3g.40gb.mps4@4:free",
                                                  "3g.40gb@4:free"));
    EXPECT_EQ(Annotation("status-partitioning-plan"), plan);
  }
}

NodeDevices WithInstances(std::vector<device::GpuInstance> instances) {
  NodeDevices devices;
  device::ObservedGpu& gpu = devices.gpus.emplace_back();
  gpu.model = gpu::Catalogue::Builtin().FindSharingModes("H100-80GB+3g.40gb.mps4+GPU");
  gpu.instances = std::move(instances);
  return devices;
}

TEST(DividedInstancesTest, HolderOfAPartHoldsItsInstance) {
  NodeDevices devices =
      WithInstances({{0, 1, "MIG-a", "3g.40gb", 9, 0, 4},
                     {0, 2, "MIG-b::mps4::0", "3g.40gb.mps4", -1, 4, 1, true, "MIG-b"}});
  devices.holders = {{"MIG-a::mps4::1", "ml/a"}, {"MIG-b::mps2::1", "ml/b"}};
  HoldInstancesOfParts(devices);
  EXPECT_EQ(devices.holders["MIG-a"], "ml/a");
  EXPECT_THAT(devices.unhealthy, ::testing::ElementsAre("MIG-a", "MIG-b::mps4::0"));
  devices.unhealthy.clear();
  EXPECT_THAT(devices.doubtful, ::testing::ElementsAre("MIG-b::mps4::0"));
  devices.doubtful.clear();
  DoubtInstancesOfParts({{"nvidia.com/mig-3g.40gb.mps4", 1}, {"nvidia.com/gpu-10gb", 1}}, devices);
  EXPECT_THAT(devices.doubtful, ::testing::ElementsAre("MIG-a"));
  EXPECT_THAT(devices.unhealthy, ::testing::ElementsAre("MIG-a"));
  const auto divided = DividedInstancesOf(devices);
  ASSERT_THAT(divided, SizeIs(1));
  EXPECT_EQ(divided.begin()->first, "MIG-b");
  EXPECT_THAT(divided.begin()->second.parts, SizeIs(1));
}

}  // namespace
}  // namespace nos::agent
