// Exact sums of money and of GPU time, in integers.
//
//   const Micros bill = CostOf(price, from, to);
//   const std::vector<Micros> parts = Split(bill, {2, 1, 5});  // they add up to the bill
//
// Pure. Internal to this library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "telemetry/records.h"
#include "telemetryserver/prices.h"

namespace nos::telemetryserver {

// Cost of [from, to), the same for any division of the time into intervals: a whole hour, however
// divided, costs the price of an hour. REQUIRES: 0 <= per_hour <= kMaxPrice, 0 <= from <= to.
Micros CostOf(Micros per_hour, telemetry::Millis from, telemetry::Millis to);

// Parts in proportion to the weights, each rounded by less than one. The rounding is given out in
// order, so that the parts add up to the amount; without any weight the first one has it. REQUIRES:
// no negative values.
std::vector<Micros> Split(Micros amount, std::span<const int64_t> weights);

}  // namespace nos::telemetryserver
