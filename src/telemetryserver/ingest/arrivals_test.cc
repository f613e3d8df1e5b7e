#include "telemetryserver/ingest/arrivals.h"

#include <gtest/gtest.h>

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

TEST(ArrivalsTest, SamplesConcernTheirHour) {
  Arrivals arrivals;
  const uint64_t mark = arrivals.Mark();
  arrivals.AddSamples(10 * kHour + 5);
  EXPECT_FALSE(arrivals.Changed(9 * kHour, mark));
  EXPECT_TRUE(arrivals.Changed(10 * kHour, mark));
  EXPECT_FALSE(arrivals.Changed(11 * kHour, mark));
  EXPECT_FALSE(arrivals.Changed(10 * kHour, arrivals.Mark()));
}

TEST(ArrivalsTest, ChangesConcernLaterHoursToo) {
  Arrivals arrivals;
  const uint64_t mark = arrivals.Mark();
  arrivals.AddChange(10 * kHour + 5);
  EXPECT_FALSE(arrivals.Changed(9 * kHour, mark));
  EXPECT_TRUE(arrivals.Changed(10 * kHour, mark));
  EXPECT_TRUE(arrivals.Changed(500 * kHour, mark));
  EXPECT_FALSE(arrivals.Changed(500 * kHour, arrivals.Mark()));
}

TEST(ArrivalsTest, ForgettingHoursMissesNoChange) {
  Arrivals arrivals;
  const uint64_t mark = arrivals.Mark();
  const auto hours = static_cast<telemetry::Millis>(Arrivals::kMaxHours);
  for (telemetry::Millis hour = 0; hour <= hours + 10; ++hour) arrivals.AddSamples(hour * kHour);
  for (telemetry::Millis hour = 0; hour <= hours + 10; ++hour) {
    ASSERT_TRUE(arrivals.Changed(hour * kHour, mark)) << hour;
  }
  EXPECT_FALSE(arrivals.Changed(0, arrivals.Mark()));
}

}  // namespace
}  // namespace nos::telemetryserver
