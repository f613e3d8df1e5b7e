#include "telemetryserver/levels.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

constexpr int64_t kPower = 7;

// A row of five minutes with one bucket.
std::string RowOf(double mean, double min, double max, double count) {
  return EncodeRow({kPower}, {.times = {0}, .columns = {{mean}, {min}, {max}, {count}}});
}

// The hours' buckets of a window to which these rows were added and merged.
std::vector<Bucket> HoursOf(const std::vector<std::string>& rows) {
  WindowSums sums(kLevels[2], 0);
  for (const std::string& row : rows) EXPECT_TRUE(sums.Add(row, 1).ok());
  for (const std::string& row : rows) EXPECT_TRUE(sums.Merge(row, 1).ok());
  std::vector<Bucket> buckets;
  const std::string rolled = sums.Encode();
  if (rolled.empty()) return buckets;
  EXPECT_TRUE(AppendBuckets(rolled, 2, kPower, 0, kDay, buckets).ok());
  return buckets;
}

TEST(WindowSumsTest, DamagedBucketsAreLeftOut) {
  const std::string good = RowOf(2, 1, 3, 30);
  for (const std::string& damaged :
       {RowOf(2, 3, 1, 30), RowOf(2, kNoSample, 3, 30), RowOf(2, 1, kNoSample, 30),
        RowOf(2, 1, 3, kNoSample), RowOf(2, 1, 3, -30), RowOf(2, 1, 3, 0)}) {
    EXPECT_TRUE(HoursOf({damaged}).empty());
    const std::vector<Bucket> hours = HoursOf({damaged, good});
    ASSERT_EQ(hours.size(), 1U);
    EXPECT_EQ(hours[0].mean, 2);
    EXPECT_EQ(hours[0].min, 1);
    EXPECT_EQ(hours[0].max, 3);
    EXPECT_EQ(hours[0].count, 30);
  }
}

}  // namespace
}  // namespace nos::telemetryserver
