#include "dra/suspect_devices.h"

#include <gmock/gmock.h>

namespace nos::dra {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

DeviceId Device(int number) {
  return {Name("d.io"), Name("n"), Name("d" + std::to_string(number))};
}

TEST(SuspectDevicesTest, RemembersThemForAWhile) {
  SuspectDevices suspects;
  suspects.Add("claim", Device(1), Time(seconds(10)));
  suspects.Add("pod", Device(2), Time(seconds(20)));
  suspects.Add("claim", Device(1), Time(seconds(30)));
  EXPECT_THAT(suspects.Of({"claim", "pod"}), ElementsAre(Device(1), Device(2)));
  EXPECT_THAT(suspects.Of({"other"}), IsEmpty());
  suspects.Forget(Time(seconds(20)));
  EXPECT_THAT(suspects.Of({"claim", "pod"}), ElementsAre(Device(1)));
  suspects.Forget(Time(seconds(30)));
  EXPECT_TRUE(suspects.empty());
}

TEST(SuspectDevicesTest, RemembersTheLatest) {
  SuspectDevices suspects;
  const int most = static_cast<int>(SuspectDevices::kMax);
  for (int i = 0; i <= most; ++i) suspects.Add("claim", Device(i), Time(seconds(i)));
  EXPECT_EQ(suspects.Of({"claim"}).size(), SuspectDevices::kMax);
  EXPECT_FALSE(suspects.Of({"claim"}).contains(Device(0)));
}

}  // namespace
}  // namespace nos::dra
