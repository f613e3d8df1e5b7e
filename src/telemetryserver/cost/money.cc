#include "telemetryserver/cost/money.h"

#include "telemetryserver/levels.h"

namespace nos::telemetryserver {
namespace {

__extension__ using Wide = __int128;

// Cost since the beginning of the hour that contains `at`.
Micros WithinHour(Micros per_hour, telemetry::Millis at) { return per_hour * (at % kHour) / kHour; }

}  // namespace

Micros CostOf(Micros per_hour, telemetry::Millis from, telemetry::Millis to) {
  const Micros hours = (to / kHour - from / kHour) * per_hour;
  return hours + WithinHour(per_hour, to) - WithinHour(per_hour, from);
}

std::vector<Micros> Split(Micros amount, std::span<const int64_t> weights) {
  Wide all = 0, until = 0;
  for (const int64_t weight : weights) all += weight;
  std::vector<Micros> parts;
  if (all == 0) {  // no weight at all
    parts.resize(weights.size());
    if (!parts.empty()) parts.front() = amount;
    return parts;
  }
  Micros given = 0;
  for (const int64_t weight : weights) {
    until += weight;
    const auto sum = static_cast<Micros>(Wide{amount} * until / all);
    parts.push_back(sum - given);
    given = sum;
  }
  return parts;
}

}  // namespace nos::telemetryserver
