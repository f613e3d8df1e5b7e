#include "scheduling/packing/size_prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace nos::scheduling::packing {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

std::vector<double> Price(std::vector<SizeDemand> sizes) { return PriceSizes(sizes); }
auto Near(double value) { return DoubleNear(value, 1e-5); }

// Maximum worth of slices in one GPU.
double DearestFilling(const std::vector<SizeDemand>& sizes, const std::vector<double>& prices) {
  std::vector<double> best(1001, 0);
  for (int room = 1; room <= 1000; ++room) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i].milli <= room) {
        best[room] = std::max(best[room], best[room - sizes[i].milli] + prices[i]);
      }
    }
  }
  return best[1000];
}

TEST(SizePrices, SlicesThatPairUpAreWorthTheirPartOfGpu) {
  EXPECT_THAT(Price({{810, 5}, {480, 5}, {320, 5}}),
              ElementsAre(Near(1), Near(0.5), Near(1 / 3.0)));
}

TEST(SizePrices, RareFillerIsWorthNothing) {
  // Every 160 fits beside an 810, so it needs no GPU of its own.
  EXPECT_THAT(Price({{810, 100}, {160, 5}}), ElementsAre(Near(1), Near(0)));
}

TEST(SizePrices, RareLargeSizeLosesPriceOfItsFiller) {
  // c160 <= 1/6 (six fit a GPU), c810 + c160 <= 1, and the many 160s dominate.
  EXPECT_THAT(Price({{810, 1}, {160, 600}}), ElementsAre(Near(5 / 6.0), Near(1 / 6.0)));
}

TEST(SizePrices, PricesThirdsExactly) {
  EXPECT_EQ(CellMilli(std::vector<SizeDemand>{{333, 1}, {334, 1}}), 1);
  EXPECT_THAT(Price({{333, 10}, {334, 1}}), ElementsAre(Near(1 / 3.0), Near(1 / 3.0)));
}

TEST(SizePrices, WholeGpuIsWorthOne) {
  EXPECT_THAT(Price({{1000, 3}}), ElementsAre(Near(1)));
  EXPECT_THAT(Price({}), ElementsAre());
  EXPECT_EQ(CellMilli({}), 1000);
  EXPECT_EQ(CellMilli(std::vector<SizeDemand>{{810, 1}, {470, 1}}), 10);
}

class RandomSizes : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomSizes, NoFillingExceedsOneGpuAndTotalCoversDemand) {
  Random random(GetParam());
  std::set<int> chosen;
  const size_t count = 1 + random.Below(80);  // may exceed kMaxPricedSizes
  while (chosen.size() < count) chosen.insert(1 + static_cast<int>(random.Below(1000)));
  std::vector<SizeDemand> sizes;
  sizes.reserve(chosen.size());
  for (const int milli : chosen)
    sizes.push_back({milli, static_cast<double>(1 + random.Below(1000))});

  const std::vector<double> prices = PriceSizes(sizes);
  EXPECT_LE(DearestFilling(sizes, prices), 1 + 1e-6);
  if (sizes.size() > kMaxPricedSizes) return;
  double gpus = 0, worth = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_GE(prices[i], 0);
    gpus += sizes[i].milli * sizes[i].count / 1000;
    worth += prices[i] * sizes[i].count;
  }
  EXPECT_GE(worth, gpus * (1 - 1e-5));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSizes, testing::Range<uint64_t>(1, 31));

}  // namespace
}  // namespace nos::scheduling::packing
