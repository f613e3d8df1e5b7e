#include "sim/world/checks/satisfiable_claims.h"

#include <gtest/gtest.h>

#include "sim/world/node/device_slices.h"

namespace nos::sim {
namespace {

Json FromText(std::string_view text) { return ParseJson(text).value(); }

// A node with two A30: four slots each.
class NodeDevicesTest : public testing::Test {
 protected:
  NodeDevicesTest() {
    const gpu::Model* model = gpu::Catalogue::Builtin().FindByName("A30");
    AnnouncedGpu gpu{model, "GPU-0", "NVIDIA-A30", true, true};
    AnnouncedGpu other = gpu;
    other.uuid = "GPU-1";
    slices_ = ResourceSlices("n", "uid", {gpu, other});
  }
  static AskedDevices Mig(const std::string& profile, int count = 1) {
    return {.device_class = "mig.nvidia.com", .profile = profile, .count = count};
  }
  static AskedDevices Gpu(int count = 1) {
    return {.device_class = "gpu.nvidia.com", .profile = {}, .count = count};
  }
  void Allocate(const std::string& device) {
    claims_.push_back(FromText(R"({"status":{"allocation":{"devices":{"results":[
        {"driver":"gpu.nvidia.com","pool":"n","device":")" +
                               device + R"("}]}}}})"));
  }
  bool Serves(const AskedClaim& claim) {
    return NodeDevices(slices_, rules_, claims_, "n").CouldServe({&claim});
  }

  std::vector<Json> slices_, rules_, claims_;
};

TEST_F(NodeDevicesTest, DevicesOfAllocatedClaimsAreTaken) {
  EXPECT_TRUE(Serves({{{Gpu(2)}}}));
  EXPECT_FALSE(Serves({{{Gpu(3)}}}));
  Allocate("gpu-0");
  EXPECT_FALSE(Serves({{{Gpu(2)}}}));
  EXPECT_TRUE(Serves({{{Gpu()}}}));
  EXPECT_TRUE(Serves({{{Mig("1g.6gb", 4)}}}));
  EXPECT_FALSE(Serves({{{Mig("1g.6gb", 5)}}}));
}

TEST_F(NodeDevicesTest, InstancesShareTheCountersOfTheirGpu) {
  EXPECT_TRUE(Serves({{{Mig("2g.12gb", 2)}, {Mig("1g.6gb", 4)}}}));
  EXPECT_FALSE(Serves({{{Mig("2g.12gb", 3)}, {Mig("1g.6gb", 3)}}}));
  EXPECT_FALSE(Serves({{{Mig("2g.12gb", 2)}, {Mig("1g.6gb")}}, true})) << "of one GPU";
}

TEST_F(NodeDevicesTest, AnyAlternativeWillDo) {
  Allocate("gpu-0");
  Allocate("gpu-1");
  EXPECT_FALSE(Serves({{{Gpu(), Mig("4g.24gb")}}}));
  claims_.pop_back();
  EXPECT_TRUE(Serves({{{Gpu(2), Mig("4g.24gb")}}}));
}

TEST_F(NodeDevicesTest, TaintsKeepOthersAway) {
  rules_.push_back(FromText(R"({"spec":{"deviceSelector":{"pool":"n"},
      "taint":{"key":"k","effect":"NoSchedule"}}})"));
  EXPECT_FALSE(Serves({{{Gpu()}}}));
  AskedDevices tolerant = Gpu();
  tolerant.tolerates = true;
  EXPECT_TRUE(Serves({{{tolerant}}}));
}

TEST_F(NodeDevicesTest, BrokenPoolServesNothing) {
  slices_.pop_back();
  EXPECT_FALSE(Serves({{{Gpu()}}}));
}

TEST_F(NodeDevicesTest, HostileClaimNeedNotBeServed) {
  EXPECT_FALSE(Serves({{{Gpu()}}, false, true}));
}

}  // namespace
}  // namespace nos::sim
