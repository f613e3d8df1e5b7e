#include "telemetryserver/cost/money.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

int64_t Below(Random& random, int64_t limit) {
  return static_cast<int64_t>(random.Below(static_cast<uint64_t>(limit)));
}

TEST(MoneyTest, HourCostsItsPriceHoweverItIsDivided) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    const Micros price = Below(random, kMaxPrice) + (round == 0 ? 0 : 1);
    const telemetry::Millis begin = 489'933 * kHour;
    Micros sum = 0;
    for (telemetry::Millis at = begin; at < begin + kHour;) {
      const telemetry::Millis next = std::min(begin + kHour, at + 1 + Below(random, 400'000));
      sum += CostOf(price, at, next);
      at = next;
    }
    ASSERT_EQ(sum, price);
  }
  EXPECT_EQ(CostOf(kMaxPrice, 0, 24 * kHour), 24 * kMaxPrice);
  EXPECT_EQ(CostOf(kMaxPrice, 5, 5), 0);
}

TEST(MoneyTest, PartsAddUpAndAreInProportion) {
  Random random(11);
  for (int round = 0; round < 500; ++round) {
    const Micros amount = Below(random, kMaxPrice);
    std::vector<int64_t> weights(static_cast<size_t>(1 + Below(random, 9)));
    for (int64_t& weight : weights) weight = Below(random, 1000);
    weights.front() += 1;
    const int64_t all = std::accumulate(weights.begin(), weights.end(), int64_t{0});
    const std::vector<Micros> parts = Split(amount, weights);
    ASSERT_EQ(std::accumulate(parts.begin(), parts.end(), Micros{0}), amount);
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto exact =
          static_cast<double>(amount) * static_cast<double>(weights[i]) / static_cast<double>(all);
      ASSERT_NEAR(static_cast<double>(parts[i]), exact, 1.01);
    }
  }
  EXPECT_EQ(Split(10, std::vector<int64_t>{1, 1, 1}), (std::vector<Micros>{3, 3, 4}));
  EXPECT_EQ(Split(7, std::vector<int64_t>{0, 0}), (std::vector<Micros>{7, 0}));
  EXPECT_EQ(Split(0, std::vector<int64_t>{1, 2}), (std::vector<Micros>{0, 0}));
}

}  // namespace
}  // namespace nos::telemetryserver
