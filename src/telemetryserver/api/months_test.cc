#include "telemetryserver/api/months.h"

#include <gtest/gtest.h>

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kNovember = 1'793'491'200'000;  // 2026-11-01T00:00:00Z

TEST(MonthsTest, BeginAndEndAtMidnightUtc) {
  const auto november = MonthOf("2026-11", 0);
  ASSERT_TRUE(november.ok());
  EXPECT_EQ(november->span.from, kNovember);
  EXPECT_EQ(november->span.to, kNovember + 30 * kDay);
  const auto leap = MonthOf("2028-02", 0);
  ASSERT_TRUE(leap.ok());
  EXPECT_EQ(leap->span.to - leap->span.from, 29 * kDay);
  EXPECT_EQ(MonthOf("2026-12", 0)->span.to, MonthOf("2027-01", 0)->span.from);
}

TEST(MonthsTest, WithoutNameIsTheMonthOfTheTime) {
  EXPECT_EQ(MonthOf("", kNovember)->name, "2026-11");
  EXPECT_EQ(MonthOf("", kNovember - 1)->name, "2026-10");
  EXPECT_EQ(MonthOf("", kNovember + 30 * kDay - 1)->name, "2026-11");
}

TEST(MonthsTest, RefusesOtherTexts) {
  for (const char* text : {"2026", "2026-13", "2026-00", "2026-1", "11-2026", "2026/11", "x",
                           "1969-12", "2026-11-01", "-026-11", "2026--1", "2026-+1"}) {
    EXPECT_FALSE(MonthOf(text, kNovember).ok()) << text;
  }
}

}  // namespace
}  // namespace nos::telemetryserver
