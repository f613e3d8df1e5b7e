// Calendar months in UTC.
//
//   NOS_ASSIGN(const Month month, MonthOf("2026-11", now));   // "": the month that has now
//
// Pure. Internal to this library.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "telemetry/records.h"

namespace nos::telemetryserver {

struct TimeSpan {
  telemetry::Millis from = 0, to = 0;  // [from, to)
};

struct Month {
  std::string name;  // "2026-11"
  TimeSpan span;
};

// Error: kInvalid.
Result<Month> MonthOf(std::string_view name, telemetry::Millis now);

}  // namespace nos::telemetryserver
