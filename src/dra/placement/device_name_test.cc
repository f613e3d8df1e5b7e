#include "dra/device_name.h"

#include <gtest/gtest.h>

#include "dra/gpu_driver.h"

namespace nos::dra {
namespace {

TEST(DeviceNameTest, StatesGpuProfileAndStart) {
  const auto slice = ReadDeviceName(kNvidiaDriver, "gpu-12-mig-1g10gb-19-6");
  ASSERT_TRUE(slice);
  EXPECT_EQ(slice->gpu, 12);
  EXPECT_EQ(slice->profile, "1g.10gb");
  EXPECT_EQ(slice->start, 6);
  const auto media = ReadDeviceName(kNosDriver, "gpu-0-mig-1g10gb-me-20-3");
  ASSERT_TRUE(media);
  EXPECT_EQ(media->profile, "1g.10gb.me");
  EXPECT_EQ(media->start, 3);
  const auto whole = ReadDeviceName(kNosDriver, "gpu-3");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->gpu, 3);
  EXPECT_EQ(whole->profile, "");
  EXPECT_EQ(whole->sharing, DeviceSharing::kNone);
}

TEST(DeviceNameTest, StatesWhatClaimsShare) {
  const auto share = ReadDeviceName(kNosDriver, "gpu-3-mps");
  ASSERT_TRUE(share);
  EXPECT_EQ(share->gpu, 3);
  EXPECT_EQ(share->profile, "");
  EXPECT_EQ(share->sharing, DeviceSharing::kMps);
  const auto turn = ReadDeviceName(kNosDriver, "gpu-0-mig-1g10gb-me-20-3-time-slices");
  ASSERT_TRUE(turn);
  EXPECT_EQ(turn->profile, "1g.10gb.me");
  EXPECT_EQ(turn->start, 3);
  EXPECT_EQ(turn->sharing, DeviceSharing::kTimeSlices);
  for (const char* device : {"-mps", "mps", "gpu-mps", "gpu--mps", "gpu-0mps", "gpu-0-mps-mps"}) {
    EXPECT_FALSE(ReadDeviceName(kNosDriver, device)) << device;
  }
}

TEST(DeviceNameTest, OtherNamesAreNoGpus) {
  for (const char* device : {"", "gpu-", "gpu-x", "gpu-0-vfio", "gpu-0-mig-", "gpu-0-mig-gb",
                             "gpu-99999999999999999999", "gpu-0-mig-1g10gb-M/E-2"}) {
    EXPECT_FALSE(ReadDeviceName(kNvidiaDriver, device)) << device;
  }
  EXPECT_FALSE(ReadDeviceName("nic.example.com", "gpu-0"));
  EXPECT_FALSE(ReadDeviceName(kNvidiaDriver, "gpu-0-mig-1g10gb-19-999")->start);
}

}  // namespace
}  // namespace nos::dra
