#include "telemetryserver/ingest/store_health.h"

#include <gtest/gtest.h>

namespace nos::telemetryserver {
namespace {

using std::chrono::seconds;

TEST(StoreHealthTest, ReportsLastWrite) {
  Metrics metrics;
  StoreHealth health(metrics);
  EXPECT_TRUE(health.Get().ok());
  health.Set({Code::kUnavailable, "disk full"});
  EXPECT_EQ(health.Get().message(), "disk full");
  EXPECT_TRUE(health.failing());
  health.Set(Status::Ok());
  EXPECT_TRUE(health.Get().ok());
}

// A write that hangs has no error.
TEST(StoreHealthTest, ReportsRoundThatDoesNotEnd) {
  Metrics metrics;
  Time now{};
  StoreHealth health(metrics, [&] { return now; });
  {
    const StoreHealth::Round round(health);
    now += seconds(20);
    EXPECT_TRUE(health.Get().ok());
    now += seconds(1);
    EXPECT_EQ(health.Get().code(), Code::kUnavailable);
    EXPECT_EQ(health.Get().message(), "the store has not answered for 21 s: look at its disk");
    EXPECT_FALSE(health.failing()) << "no write has failed";
  }
  EXPECT_TRUE(health.Get().ok());
  now += seconds(60);
  EXPECT_TRUE(health.Get().ok()) << "none runs";
}

}  // namespace
}  // namespace nos::telemetryserver
