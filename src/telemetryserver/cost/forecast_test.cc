#include "telemetryserver/cost/forecast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "base/random.h"
#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

TEST(ForecastTest, NeedsThreeDays) {
  EXPECT_FALSE(ForecastOf(5, std::vector<Micros>{}, kDay));
  EXPECT_FALSE(ForecastOf(5, std::vector<Micros>{7, 7}, kDay));
  EXPECT_TRUE(ForecastOf(5, std::vector<Micros>{7, 7, 7}, kDay));
}

TEST(ForecastTest, DaysThatCostTheSameHaveNoSpread) {
  const auto forecast = ForecastOf(1'000, std::vector<Micros>(9, 48), 5 * kDay / 2);
  ASSERT_TRUE(forecast);
  EXPECT_EQ(forecast->cost, 1'120);
  EXPECT_EQ(forecast->low, 1'120);
  EXPECT_EQ(forecast->high, 1'120);
  EXPECT_EQ(forecast->per_day, 48);
  EXPECT_EQ(forecast->days, 7U);
}

TEST(ForecastTest, EndedMonthCostsWhatItCost) {
  const auto forecast = ForecastOf(1'000, std::vector<Micros>{1, 90, 5}, 0);
  ASSERT_TRUE(forecast);
  EXPECT_EQ(forecast->cost, 1'000);
  EXPECT_EQ(forecast->low, 1'000);
  EXPECT_EQ(forecast->high, 1'000);
}

TEST(ForecastTest, WeekendsCountInTheirProportion) {
  std::vector<Micros> days;
  for (int day = 0; day < 13; ++day) days.push_back(day % 7 < 5 ? 70 : 0);
  // The last seven of thirteen days count.
  const auto forecast = ForecastOf(0, days, 7 * kDay);
  ASSERT_TRUE(forecast);
  EXPECT_EQ(forecast->days, 7U);
  EXPECT_EQ(forecast->per_day, 50);
  EXPECT_EQ(forecast->cost, 350);
}

TEST(ForecastTest, RangeNeverFallsBelowTheCostSoFar) {
  const auto forecast = ForecastOf(1'000, std::vector<Micros>{0, 0, 5'000'000}, 20 * kDay);
  ASSERT_TRUE(forecast);
  EXPECT_EQ(forecast->low, 1'000);
  EXPECT_GT(forecast->high, forecast->cost);
}

TEST(ForecastTest, RangeGrowsWithSpreadAndWithTheTimeLeft) {
  const auto width = [](std::vector<Micros> days, telemetry::Millis left) {
    const auto forecast = ForecastOf(1'000'000, days, left);
    return forecast->high - forecast->low;
  };
  EXPECT_LT(width({99, 100, 101, 100, 100}, 9 * kDay), width({90, 110, 80, 120, 100}, 9 * kDay));
  EXPECT_LT(width({90, 110, 80, 120, 100}, 9 * kDay), width({90, 110, 80, 120, 100}, 20 * kDay));
}

double Normal(Random& random) {
  const double a = (static_cast<double>(random.Below(1'000'000)) + 1) / 1'000'001;
  const double b = static_cast<double>(random.Below(1'000'000)) / 1'000'000;
  return std::sqrt(-2 * std::log(a)) * std::cos(2 * std::numbers::pi * b);
}

// Share of the forecasts whose range has the cost that the month ended with. `alike`: how much of a
// day's difference from the mean the next day keeps.
double Coverage(size_t known, int left, double alike) {
  Random random(17);
  int within = 0;
  constexpr int kRounds = 2'000;
  for (int round = 0; round < kRounds; ++round) {
    double off = Normal(random);
    const auto next = [&] {
      off = alike * off + std::sqrt(1 - alike * alike) * Normal(random);
      return static_cast<Micros>(1'000'000'000 + 100'000'000 * off);
    };
    std::vector<Micros> days;
    for (size_t i = 0; i < known; ++i) days.push_back(next());
    Micros end = 0;
    for (int i = 0; i < left; ++i) end += next();
    const auto forecast = ForecastOf(0, days, left * kDay);
    within += forecast->low <= end && end <= forecast->high ? 1 : 0;
  }
  return static_cast<double>(within) / kRounds;
}

TEST(ForecastTest, FourOfFiveMonthsEndWithinTheRange) {
  for (const int left : {1, 10, 25}) {
    EXPECT_NEAR(Coverage(14, left, 0), 0.82, 0.06) << left;
    EXPECT_NEAR(Coverage(7, left, 0), 0.83, 0.07) << left;
    EXPECT_GT(Coverage(3, left, 0), 0.74) << left;
    // Days that resemble the day before are known from two weeks, roughly.
    EXPECT_GT(Coverage(14, left, 0.5), 0.68) << left;
  }
}

}  // namespace
}  // namespace nos::telemetryserver
