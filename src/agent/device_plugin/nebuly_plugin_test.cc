// Which shares Nebuly's plugin is to offer. (loop/nebuly_test.cc tests how the plugin is
// configured.)
#include "agent/nebuly_plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "gpu/shares.h"

namespace nos::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

const gpu::Model& kModel = gpu::SharesOf(39);

gpu::Placement Share(const char* profile, uint8_t start) {
  return {*kModel.FindProfile(profile), start};
}

// GPU 0 with these shares at starts 0, 1, 2...
NodeDevices Node(const std::vector<std::pair<std::string, std::string>>& shares) {
  NodeDevices devices;
  device::ObservedGpu gpu{0, &kModel, true, {}, "GPU-a"};
  for (const auto& [profile, name] : shares) {
    device::GpuInstance instance;
    instance.uuid = "GPU-a::" + name;
    instance.profile = profile;
    instance.start = static_cast<uint8_t>(gpu.instances.size());
    gpu.instances.push_back(instance);
  }
  devices.gpus.push_back(gpu);
  return devices;
}

std::vector<std::string> Match(std::vector<gpu::Placement> wanted, const NodeDevices& devices) {
  std::vector<device::Target> targets{{0, std::move(wanted), &kModel}};
  MatchShares(targets, devices);
  std::vector<std::string> names;
  for (const gpu::Placement& placement : targets[0].placements) {
    names.push_back(kModel.PlacementName(placement));
  }
  return names;
}

TEST(MatchShares, UsesExistingSharesOfAnyNumber) {
  const NodeDevices devices = Node({{"10gb", "10::0"}, {"20gb", "20::0"}});
  EXPECT_THAT(Match({Share("20gb", 7), Share("10gb", 3)}, devices),
              UnorderedElementsAre("20gb@1", "10gb@0"));
}

TEST(MatchShares, PrefersHeldSharesThenLowNumbers) {
  NodeDevices devices = Node({{"10gb", "10::2"}, {"10gb", "10::0"}, {"10gb", "10::1"}});
  EXPECT_THAT(Match({Share("10gb", 0)}, devices), ElementsAre("10gb@1"));
  devices.holders["GPU-a::10::2"] = "ml/a";
  EXPECT_THAT(Match({Share("10gb", 1)}, devices), ElementsAre("10gb@0"));
  EXPECT_THAT(Match({Share("10gb", 1), Share("10gb", 2)}, devices),
              UnorderedElementsAre("10gb@0", "10gb@1"));
}

TEST(MatchShares, GivesNewSharesUnusedStarts) {
  const NodeDevices devices = Node({{"10gb", "10::0"}, {"5gb", "5::0"}});
  EXPECT_THAT(Match({Share("10gb", 0), Share("20gb", 0), Share("9gb", 1)}, devices),
              UnorderedElementsAre("10gb@0", "20gb@2", "9gb@3"));
}

TEST(MatchShares, ReportsObstacleForGpuHeldWhole) {
  NodeDevices devices = Node({});
  devices.holders["GPU-a"] = "ml/whole";
  std::vector<device::Target> targets{{0, {Share("10gb", 0)}, &kModel}};
  const std::vector<gpu::Obstacle> obstacles = MatchShares(targets, devices);
  EXPECT_THAT(targets[0].placements, IsEmpty());
  ASSERT_EQ(obstacles.size(), 1u);
  EXPECT_EQ(obstacles[0].code, "InUse");
}

TEST(SharesBelow, AreOfTheSameSizeAndGpu) {
  EXPECT_THAT(SharesBelow({"GPU-a::10::2", "GPU-a::5::0", "GPU-b::10::1", "MIG-x", "GPU-c"}),
              UnorderedElementsAre("GPU-a::10::1", "GPU-a::10::0", "GPU-b::10::0"));
}

TEST(SharesIn, CountsBySizeAndGpu) {
  EXPECT_EQ(SharesIn({{"nvidia.com/gpu-10gb", "GPU-a::10::0"},
                      {"nvidia.com/gpu-10gb", "GPU-a::10::1", false},
                      {"nvidia.com/gpu-10gb", "GPU-b::10::0"},
                      {"nvidia.com/gpu", "GPU-c"},
                      {"nvidia.com/mig-1g.5gb", "MIG-1"}}),
            (NebulyShares{{{"GPU-a", 10}, 2}, {{"GPU-b", 10}, 1}}));
}

// The plugin would offer 10::1 in place of 10::2, and a pod could get it in addition.
TEST(SharesIn, StopsAtTheFirstGap) {
  EXPECT_EQ(SharesIn({{"nvidia.com/gpu-10gb", "GPU-a::10::2"},
                      {"nvidia.com/gpu-10gb", "GPU-a::10::0"},
                      {"nvidia.com/gpu-15gb", "GPU-a::15::1"}}),
            (NebulyShares{{{"GPU-a", 10}, 1}}));
}

class WithSharesBelowTest : public ::testing::Test {
 protected:
  // The shares that stay on a GPU of 39 GiB if pods hold `held` and bound pods need `needed`.
  static std::set<std::string> Staying(const std::vector<std::string>& shares,
                                       const std::set<std::string>& held,
                                       const std::set<std::string>& needed = {}) {
    std::vector<std::pair<std::string, std::string>> named;
    for (const std::string& share : shares) {
      named.emplace_back(share.substr(0, share.find(':')) + "gb", share);
    }
    NodeDevices devices = Node(named);
    device::GpuInfo info;
    info.share_gib = 39;
    devices.infos.push_back(info);
    std::set<std::string> ids;
    for (const std::string& share : held) devices.holders["GPU-a::" + share] = "ml/a";
    for (const auto& some : {held, needed}) {
      for (const std::string& share : some) ids.insert("GPU-a::" + share);
    }
    const std::set<std::string> staying = WithSharesBelow(ids, devices);
    std::set<std::string> there;
    for (const std::string& share : shares) {
      if (staying.contains("GPU-a::" + share)) there.insert(share);
    }
    return there;
  }
};

TEST_F(WithSharesBelowTest, KeepsSharesBelowAHeldOne) {
  EXPECT_THAT(Staying({"10::0", "10::1", "10::2", "5::0"}, {"10::1"}),
              UnorderedElementsAre("10::0", "10::1"));
}

TEST_F(WithSharesBelowTest, DropsSharesThatDoNotFitBesideHeldOnes) {
  EXPECT_THAT(Staying({"10::0", "10::1", "10::2", "15::0"}, {"10::2", "15::0"}),
              UnorderedElementsAre("10::0", "10::2", "15::0"));
  EXPECT_THAT(Staying({"10::0", "20::0", "20::1"}, {"20::0", "20::1"}, {"10::0"}),
              UnorderedElementsAre("20::0", "20::1"))
      << "held shares alone exceed the memory";
}

TEST_F(WithSharesBelowTest, DropsSharesAboveAGap) {
  EXPECT_THAT(Staying({"10::1", "10::2"}, {"10::2"}), UnorderedElementsAre("10::2"));
}

TEST(PodHasFile, ReturnsNothingIfVolumesAreNotVisible) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(::testing::TempDir()) / "nebuly-pods";
  const fs::path volume = folder / "uid/volumes/kubernetes.io~configmap/v";
  fs::remove_all(folder);
  EXPECT_EQ(PodHasFile(folder, "uid", "key"), std::nullopt);
  fs::create_directories(volume);
  EXPECT_EQ(PodHasFile(folder, "uid", "key"), false);
  std::ofstream(volume / "key") << "text";
  EXPECT_EQ(PodHasFile(folder, "uid", "key"), true);
  EXPECT_EQ(PodHasFile(folder, "", "key"), std::nullopt);
  EXPECT_EQ(PodHasFile(folder, "../uid", "key"), std::nullopt);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace nos::agent
