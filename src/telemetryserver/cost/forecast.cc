#include "telemetryserver/cost/forecast.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kWeek = 7;
// Quantiles 0.9 of Student's t by degrees of freedom: 80 % of the values lie between both signs.
constexpr std::array<double, kMaxForecastDays> kQuantiles = {
    0, 3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.363, 1.356, 1.350};
// A likeness nearer to 1 is not known from two weeks, and its range would be without end.
constexpr double kMaxLikeness = 0.8;

struct Spread {
  double mean = 0, variance = 0;
  double likeness = 0;  // autocorrelation of neighbouring days, not below 0
};

Spread SpreadOf(std::span<const Micros> days) {
  Spread spread;
  const auto count = static_cast<double>(days.size());
  for (const Micros day : days) spread.mean += static_cast<double>(day) / count;
  double squares = 0, products = 0;
  for (size_t i = 0; i < days.size(); ++i) {
    const double off = static_cast<double>(days[i]) - spread.mean;
    squares += off * off;
    if (i > 0) products += off * (static_cast<double>(days[i - 1]) - spread.mean);
  }
  spread.variance = squares / (count - 1);
  // The estimate from a few days is too small by about 1 / count.
  if (squares > 0) spread.likeness = std::clamp(products / squares + 1 / count, 0.0, kMaxLikeness);
  return spread;
}

Micros Rounded(double amount) {
  constexpr double kMaxMicros = 4e18;  // less than the largest value
  return static_cast<Micros>(std::llround(std::clamp(amount, 0.0, kMaxMicros)));
}

}  // namespace

std::optional<CostForecast> ForecastOf(Micros so_far, std::span<const Micros> days,
                                       telemetry::Millis remaining) {
  size_t used = std::min(days.size(), kMaxForecastDays);
  if (used < kMinForecastDays) return std::nullopt;
  if (used > kWeek) used -= used % kWeek;
  const Spread spread = SpreadOf(days.last(used));
  const double rest = static_cast<double>(std::max<telemetry::Millis>(0, remaining)) / kDay;
  // Variance of a sum of `rest` days around the mean of `used` others.
  const double alike = (1 + spread.likeness) / (1 - spread.likeness);
  const double variance = spread.variance * alike * rest * (1 + rest / static_cast<double>(used));
  const double margin = kQuantiles.at(used - 1) * std::sqrt(variance);
  const Micros more = Rounded(spread.mean * rest);
  return CostForecast{so_far + more, so_far + Rounded(spread.mean * rest - margin),
                      so_far + Rounded(spread.mean * rest + margin), Rounded(spread.mean), used};
}

}  // namespace nos::telemetryserver
