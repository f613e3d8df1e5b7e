#include "net/rate_limit.h"

#include <gtest/gtest.h>

namespace nos::net {
namespace {

using std::chrono::seconds;

const Time kStart(seconds(1'800'000'000));

TEST(RateLimitTest, BucketEmptiesAndRefills) {
  RateLimit limit({.per_second = 2, .burst = 3});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(limit.Take("a", kStart), Duration(0));
  const Duration wait = limit.Take("a", kStart);
  EXPECT_EQ(wait, std::chrono::milliseconds(500));
  EXPECT_EQ(limit.Take("b", kStart), Duration(0)) << "other readers have their own limit";
  EXPECT_GT(limit.Wait("a", kStart), Duration(0));
  EXPECT_EQ(limit.Wait("a", kStart + wait), Duration(0));
  EXPECT_EQ(limit.Take("a", kStart + wait), Duration(0));
  EXPECT_GT(limit.Take("a", kStart + wait), Duration(0));
  EXPECT_EQ(limit.Take("a", kStart - std::chrono::hours(1)), Duration(0))
      << "a clock set back blocks no client";
}

TEST(RateLimitTest, BoundsNumberOfKeys) {
  RateLimit limit({.per_second = 0.001, .burst = 1, .max_known = 100});
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_EQ(limit.Take(std::to_string(i), kStart + std::chrono::milliseconds(i)), Duration(0));
    EXPECT_LE(limit.known(), 100U);
  }
  EXPECT_GT(limit.Take("9999", kStart + seconds(10)), Duration(0))
      << "the latest clients are still known";
}

TEST(RateLimitTest, Ipv6NetworkCountsAsOneClient) {
  EXPECT_EQ(NetworkOf("2001:db8::1"), NetworkOf("2001:db8::ffff:1"));
  EXPECT_NE(NetworkOf("2001:db8:0:1::1"), NetworkOf("2001:db8::1"));
  EXPECT_EQ(NetworkOf("10.0.0.1"), "10.0.0.1");
}

TEST(RateLimitTest, LargeRequestIsPaidForAfterwards) {
  RateLimit limit({.per_second = 10, .burst = 100});
  EXPECT_EQ(limit.Take("a", kStart, 250), Duration(0)) << "the bucket was full";
  EXPECT_EQ(limit.Take("a", kStart, 1), FromSeconds(15.1)) << "it owes 150";
  EXPECT_EQ(limit.Take("a", kStart + seconds(16), 1), Duration(0));
}

}  // namespace
}  // namespace nos::net
