#include "base/back_off.h"

#include <gtest/gtest.h>

namespace nos {
namespace {

using std::chrono::seconds;

TEST(BackOffTest, DoublesUpToLimit) {
  const BackOff pauses{seconds(1), seconds(5)};
  EXPECT_EQ(pauses.After(1), seconds(1));
  EXPECT_EQ(pauses.After(2), seconds(2));
  EXPECT_EQ(pauses.After(3), seconds(4));
  EXPECT_EQ(pauses.After(4), seconds(5));
  EXPECT_EQ(pauses.After(1'000'000), seconds(5));
}

TEST(BackOffTest, LimitAlsoHoldsForFirstDelay) {
  EXPECT_EQ((BackOff{seconds(9), seconds(5)}).After(1), seconds(5));
}

TEST(BackOffTest, JitterKeepsUpperHalf) {
  const BackOff pauses{seconds(2), seconds(60)};
  EXPECT_EQ(pauses.Jittered(2, 0), seconds(2));
  EXPECT_EQ(pauses.Jittered(2, 0.5), seconds(3));
}

}  // namespace
}  // namespace nos
