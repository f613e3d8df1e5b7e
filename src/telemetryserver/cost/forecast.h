// Forecast of the cost at the end of a month, from the cost of the days before now.
//
//   const auto forecast = ForecastOf(so_far, last_days, remaining);
//   forecast->low <= forecast->cost && forecast->cost <= forecast->high
//
// Each remaining day is expected to cost the mean of the last days. The range is the 80 %
// prediction interval of a sum of days that vary like these: it grows with their spread, with the
// likeness of neighbouring days, and with the uncertainty of the mean of few days. It knows no
// plans: a fleet that grows tomorrow is beyond it.
//
// Pure. Internal to this library.
#pragma once

#include <optional>
#include <span>

#include "telemetry/records.h"
#include "telemetryserver/prices.h"

namespace nos::telemetryserver {

struct CostForecast {
  Micros cost = 0, low = 0, high = 0;  // at the end of the month
  Micros per_day = 0;                  // of the remaining days
  size_t days = 0;                     // that it is made from
};

// Whole weeks if there are some, so that weekends count in their proportion.
inline constexpr size_t kMinForecastDays = 3, kMaxForecastDays = 14;
inline constexpr double kForecastConfidence = 0.8;

// `days`: cost of periods of 24 hours, the latest last. nullopt: fewer than kMinForecastDays.
// REQUIRES: no negative values.
std::optional<CostForecast> ForecastOf(Micros so_far, std::span<const Micros> days,
                                       telemetry::Millis remaining);

}  // namespace nos::telemetryserver
