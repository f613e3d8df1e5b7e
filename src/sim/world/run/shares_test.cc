// Virtual nodes whose GPUs are shared by MPS.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "device/mps_share.h"
#include "sim/world.h"
#include "sim/world/checks/satisfiable.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class SharesTest : public testing::Test {
 protected:
  SharesTest() { SetLogLevel(LogLevel::kError); }

  void Start(std::vector<InstanceSpec> shares, bool controllers = true) {
    NodeSpec node{.name = "n1", .mps = true};
    node.gpus = {{"MPS-40GB", std::move(shares)}};
    WorldOptions options;
    options.check_annotations = true;
    world = std::make_unique<World>(options, gpu::Catalogue::Builtin());
    ASSERT_TRUE(world->AddNode(node).ok());
    const Status booted = world->Boot();
    ASSERT_TRUE(booted.ok()) << booted.ToString();
    if (controllers) world->StartControllers();
  }
  void TearDown() override { EXPECT_EQ(world->violations().size(), expected_violations); }

  Machine& machine() { return *world->FindMachine("n1"); }
  // "10gb@0 used".
  std::vector<std::string> Shares() {
    std::vector<std::string> names;
    for (const auto& share : machine().Instances(0)) {
      const bool used = machine().kubelet().Holder(share.uuid) != nullptr;
      names.push_back(fmt::format("{}@{} {}", share.profile, share.start, used ? "used" : "free"));
    }
    return names;
  }
  void Create(const std::string& name, const std::string& profile) {
    world->Submit({.name = name, .containers = {{{profile, 1}}}}, world->Now());
    world->RunFor(seconds(20));
  }
  std::string Phase(const std::string& name) {
    const auto pod = world->FindPod(name);
    return pod == nullptr ? "gone" : pod->phase;
  }
  std::string Problems() {
    return fmt::format("{}", fmt::join(CheckMachine(machine(), world->Now()), ";"));
  }

  std::unique_ptr<World> world;
  size_t expected_violations = 0;
};

TEST_F(SharesTest, InitialSharesExist) {
  Start({{"10gb@0", true, "a"}, {"5gb@7", false, ""}}, false);
  EXPECT_EQ(Phase("a"), "Running");
  EXPECT_THAT(Shares(), ElementsAre("10gb@0 used", "5gb@7 free"));
  EXPECT_EQ(machine().model(0).name(), "MPS-40GB");
  const auto& allocatable = world->Nodes().at(0)->allocatable;
  EXPECT_EQ(allocatable.at("nvidia.com/gpu-5gb").Value(), 1);
}

TEST_F(SharesTest, RefusesSharesThatDoNotFit) {
  Start({});
  NodeSpec node{.name = "n2", .mps = true};
  node.gpus = {{"MPS-40GB", {{"30gb@0"}, {"11gb@1"}}}};
  EXPECT_EQ(world->AddNode(node).message(),
            "node n2: GPU 0: 11gb@1 does not fit with the instances before it");
}

TEST_F(SharesTest, AgentRestartDropsFreeSharesAndKeepsHeldOnes) {
  Start({{"10gb@0", true, "a"}, {"5gb@7", false, ""}}, false);
  machine().agent()->Crash();
  EXPECT_THAT(Shares(), ElementsAre("10gb@0 used", "5gb@7 free")) << "until there is another one";
  world->RunFor(minutes(1));
  EXPECT_THAT(Shares(), ElementsAre("10gb@0 used"));
  EXPECT_EQ(Phase("a"), "Running");
}

TEST_F(SharesTest, DoesNotAllocateSharesWithoutMpsDaemon) {
  Start({{"10gb@0", true, "a"}, {"10gb@1", false, ""}});
  machine().LoseDaemon(0);
  world->RunFor(seconds(20));
  Create("b", "10gb");
  EXPECT_EQ(Phase("b"), "Pending");
  EXPECT_EQ(Phase("a"), "Running");
  machine().RestoreDaemon(0);
  world->RunFor(minutes(1));
  EXPECT_EQ(Phase("b"), "Running");
}

TEST_F(SharesTest, DoesNotAllocateSharesOfLostGpu) {
  Start({{"10gb@0", true, "a"}, {"10gb@1", false, ""}});
  machine().LoseGpu(0);
  world->RunFor(seconds(20));
  Create("b", "10gb");
  EXPECT_EQ(Phase("b"), "Pending");
  machine().RestoreGpu(0);
  world->RunFor(minutes(1));
  EXPECT_EQ(Phase("b"), "Running");
  EXPECT_EQ(Phase("a"), "Running");
}

TEST_F(SharesTest, InvariantsDetectTooMuchMemory) {
  Start({{"30gb@0", true, "a"}}, false);
  EXPECT_EQ(Problems(), "");
  // Simulates an agent that has lost the first share.
  const std::string gpu = machine().gpus()->Info(0).uuid;
  const std::string second = device::MpsShareId({gpu, 20, 1});
  ASSERT_THAT(machine().backend()->Adopt(std::vector<std::string>{second}), IsEmpty());
  EXPECT_EQ(Problems(), "n1: GPU 0 holds what it cannot hold: 30gb@0 20gb@1");
}

TEST_F(SharesTest, InvariantsDetectDestructionOfHeldShare) {
  Start({{"10gb@0", true, "a"}}, false);
  ApiTruth none;
  const device::GpuInstance share = machine().Instances(0)[0];
  EXPECT_THAT(CheckDestruction(machine(), share, none),
              ElementsAre("n1: 10gb@0 on GPU 0 was destroyed while pod default/a holds it"));
  ASSERT_TRUE(machine().gpus()->SetComputeMode(0, device::ComputeMode::kDefault).ok());
  EXPECT_EQ(Problems(),
            "n1: default/a holds nvidia.com/gpu-10gb " + share.uuid + ", which is not there");
}

TEST_F(SharesTest, SatisfiabilityCheckIncludesShares) {
  Start({{"30gb@5", true, "a"}, {"10gb@1", false, ""}}, false);
  const auto node = world->Nodes().at(0);
  const auto could = [&](const std::map<std::string, int>& asked, bool empty) {
    PodSpec spec{.name = "p"};  // one share per container
    for (const auto& [profile, count] : asked) {
      spec.containers.insert(spec.containers.end(), static_cast<size_t>(count), {{profile, 1}});
    }
    const cluster::Pod pod = *cluster::DecodePod(PodObject(spec));
    return CouldRun({&pod}, {node.get(), &machine(), {}}, empty);
  };
  EXPECT_TRUE(could({{"10gb", 1}}, false));
  EXPECT_TRUE(could({{"3gb", 3}, {"1gb", 1}}, false));
  EXPECT_FALSE(could({{"11gb", 1}}, false));
  EXPECT_FALSE(could({{"5gb", 2}, {"1gb", 1}}, false));
  EXPECT_TRUE(could({{"40gb", 1}}, true));
  EXPECT_FALSE(could({{"1g.5gb", 1}}, true));
  EXPECT_FALSE(could({{"1gb", 41}}, true));
  const PodSpec several{.name = "p", .containers = {{{"3gb", 2}}}};
  const cluster::Pod pod = *cluster::DecodePod(PodObject(several));
  EXPECT_FALSE(CouldRun({&pod}, {node.get(), &machine(), {}}, true)) << "of one container";
}

}  // namespace
}  // namespace nos::sim
