// Devices that claims share, as nos's driver announces them: which one a claim gets.
#include <gtest/gtest.h>

#include "dra/allocation/world_test.h"
#include "dra/cel_expressions.h"
#include "dra/gpu_slices.h"
#include "dra/least_loss.h"

namespace nos::dra {
namespace {

class SharesTest : public ::testing::Test {
 protected:
  void Announce(int gpus) {
    const NodeOfDriver node{"n1", "node-uid", "580.95.05"};
    std::vector<GpuOfDriver> all;
    for (int i = 0; i < gpus; ++i) {
      GpuOfDriver& gpu = all.emplace_back();
      gpu.index = i;
      gpu.uuid = "GPU-" + std::to_string(i);
      gpu.product = "NVIDIA H100 80GB HBM3";
      gpu.model = gpu::Catalogue::Builtin().FindByName("H100-80GB");
      gpu.memory_mib = 81920;
      gpu.shares = {79, 48, 4};
    }
    for (const Json& slice : PlanSlices(node, SliceSpecs(node, all, {}), {}).create) {
      auto read = std::make_shared<ResourceSlice>();
      ASSERT_TRUE(ReadResourceSlice(JsonSource(slice), *read).ok());
      inventory_.PutSlice(read);
    }
  }
  // Requests memory of a device of this type with the profile; "": of a GPU or of any instance.
  std::string Take(const std::string& type, const std::string& profile, int gib = 0) {
    std::string condition =
        R"(device.attributes[\"gpu.nos.nebuly.com\"].type == \")" + type + R"(\")";
    if (!profile.empty()) {
      condition +=
          R"( && \"profile\" in device.attributes[\"gpu.nos.nebuly.com\"] && device.attributes[\"gpu.nos.nebuly.com\"].profile == \")" +
          profile + R"(\")";
    }
    const std::string name = "c" + std::to_string(next_++);
    const std::string capacity =
        gib == 0 ? ""
                 : R"("capacity": {"requests": {"memory": ")" + std::to_string(gib) + R"(Gi"}}, )";
    const auto claim = world_.Claim(name, R"({"requests": [{"name": "r", "exactly": {)" + capacity +
                                              R"("selectors": [{"cel": {"expression": ")" +
                                              condition + R"("}}]}}]})");
    AllocationOptions options;
    options.ranking = &ranking_;
    const PreparedClaims prepared(
        {claim}, [&](const std::string& of) { return world_.classes.at(of); },
        inventory_.features());
    const AllocationOutcome outcome = Allocate(inventory_, prepared, world_.node, options);
    if (outcome.kind == AllocationOutcome::Kind::kAllocated) {
      inventory_.Allocate(name, outcome.allocations.at(0));
    }
    return World::Text(outcome);
  }

  World world_;  // its node and class
  CelExpressions expressions_;
  Inventory inventory_{Features::Of(37), expressions_};
  LeastLoss ranking_;
  int next_ = 0;
};

TEST_F(SharesTest, FillsWhatIsSharedAlready) {
  Announce(2);
  // The smallest instance in which the share fits costs the GPUs least.
  EXPECT_EQ(Take("mps", "", 5), "gpu-0-mig-1g10gb-19-6-mps");
  EXPECT_EQ(Take("mps", "", 4), "gpu-0-mig-1g10gb-19-6-mps");
  EXPECT_EQ(Take("mps", "", 3), "gpu-0-mig-1g10gb-19-5-mps") << "the first has no memory left";
  // Only a whole GPU has so much.
  EXPECT_EQ(Take("mps", "", 60), "gpu-1-mps");
  EXPECT_EQ(Take("mps", "", 10), "gpu-1-mps");
  EXPECT_EQ(Take("mps", "", 6), "gpu-0-mig-1g10gb-19-5-mps") << "the fullest first";
}

TEST_F(SharesTest, SharedAndOwnDevicesExcludeEachOther) {
  Announce(1);
  EXPECT_EQ(Take("mps", "3g.40gb", 20), "gpu-0-mig-3g40gb-9-4-mps");
  EXPECT_EQ(Take("gpu", ""), "no");
  EXPECT_EQ(Take("mig", "3g.40gb"), "gpu-0-mig-3g40gb-9-0");
  EXPECT_EQ(Take("mps", "3g.40gb", 20), "no") << "19 GiB are left";
  EXPECT_EQ(Take("mps", "3g.40gb", 19), "gpu-0-mig-3g40gb-9-4-mps");
  EXPECT_EQ(Take("time-slices", ""), "no");
}

TEST_F(SharesTest, CountsTurns) {
  Announce(1);
  std::string first = Take("time-slices", "1g.10gb");
  for (int i = 1; i < 4; ++i) EXPECT_EQ(Take("time-slices", "1g.10gb"), first);
  const std::string next = Take("time-slices", "1g.10gb");
  EXPECT_NE(next, first);
  EXPECT_NE(next, "no");
}

TEST_F(SharesTest, MemoryIsCountedInWholeGib) {
  Announce(1);
  // 77 GiB, at least 2 for each of 48 clients.
  EXPECT_EQ(Take("mps", "7g.80gb", 75), "gpu-0-mig-7g80gb-0-0-mps");
  EXPECT_EQ(Take("mps", "7g.80gb", 1), "gpu-0-mig-7g80gb-0-0-mps");
  EXPECT_EQ(Take("mps", "7g.80gb", 1), "no");
}

}  // namespace
}  // namespace nos::dra
