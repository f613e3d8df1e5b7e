#include "dra/device_counts.h"

#include <gmock/gmock.h>

namespace nos::dra {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(DeviceCountsTest, DevicesOfNvidiasDriverAreTheResourcesTheyWouldBe) {
  struct Case {
    const char *driver, *device, *resource;
  };
  const Case cases[] = {
      {"gpu.nvidia.com", "gpu-0", "nvidia.com/gpu"},
      {"gpu.nvidia.com", "gpu-12-mig-1g10gb-19-6", "nvidia.com/mig-1g.10gb"},
      {"gpu.nos.nebuly.com", "gpu-12-mig-1g10gb-19-6", "nvidia.com/mig-1g.10gb"},
      {"gpu.nvidia.com", "gpu-0-mig-1g10gb-me-20-6", "nvidia.com/mig-1g.10gb.me"},
      {"gpu.nvidia.com", "gpu-0-mig-7g80gb-0-0", "nvidia.com/mig-7g.80gb"},
      {"gpu.nos.nebuly.com", "gpu-0-mps", "nvidia.com/gpu"},
      {"gpu.nos.nebuly.com", "gpu-0-mig-1g10gb-19-6-mps", "nvidia.com/mig-1g.10gb"},
      {"gpu.nos.nebuly.com", "gpu-0-time-slices", "nvidia.com/gpu.shared"},
      {"gpu.nos.nebuly.com", "gpu-0-mig-1g10gb-19-6-time-slices", "nvidia.com/mig-1g.10gb"},
      {"gpu.nvidia.com", "gpu-0-mps", ""},
      {"gpu.nvidia.com", "gpu-0-vfio", ""},
      {"gpu.nvidia.com", "gpu-", ""},
      {"gpu.nvidia.com", "gpu-0-mig-", ""},
      {"gpu.nvidia.com", "gpu-0-mig-gb", ""},
      {"gpu.nvidia.com", "gpu-0-mig-1g10gb-", "nvidia.com/mig-1g.10gb"},
      {"gpu.nvidia.com", "gpu-0-mig-1g10gb-M/E-2", ""},
      {"gpu.example.com", "gpu-0", ""},
  };
  for (const Case& one : cases) {
    EXPECT_EQ(ResourceOf(one.driver, one.device), one.resource) << one.device;
  }
}

TEST(DeviceCountsTest, CountsDevicesByResourceAndClass) {
  ResourceClaim claim;
  ExactRequest slices, large;
  slices.device_class = "mig.nvidia.com";
  large.device_class = "gpu.nvidia.com";
  large.name = "large";
  claim.requests = {{"slices", slices, {}}, {"any", {}, {large}}};
  Allocation allocation;
  const auto add = [&](const std::string& request, const std::string& device) -> AllocatedDevice& {
    AllocatedDevice& added = allocation.devices.emplace_back();
    added.request = request;
    added.driver = Name("gpu.nvidia.com");
    added.device = Name(device);
    return added;
  };
  add("slices", "gpu-0-mig-1g10gb-19-0");
  add("slices", "gpu-0-mig-1g10gb-19-1");
  add("any/large", "gpu-1");
  add("slices", "gpu-2").admin_access = true;
  EXPECT_THAT(CountsOf(claim, allocation),
              ElementsAre(Pair("gpu.nvidia.com.deviceclass.resource.k8s.io/devices", 1),
                          Pair("mig.nvidia.com.deviceclass.resource.k8s.io/devices", 2),
                          Pair("nvidia.com/gpu", 1), Pair("nvidia.com/mig-1g.10gb", 2)));
  allocation.devices.clear();
  AllocatedDevice& share = add("any/large", "gpu-1");
  share.share_id = "a";
  share.consumed_capacity = {{Name("memory"), Quantity::FromValue((int64_t{9} << 30) + 1)}};
  EXPECT_THAT(CountsOf(claim, allocation),
              ElementsAre(Pair("gpu.nvidia.com.deviceclass.resource.k8s.io/devices", 1),
                          Pair("nos.nebuly.com/gpu-memory", 10)));
}

}  // namespace
}  // namespace nos::dra
