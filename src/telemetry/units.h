// Units of the metrics that nos reports.
#pragma once

#include <string_view>

namespace nos::telemetry {

// "W", "MiB", "ratio"; "" for a metric without a unit or an unknown metric.
std::string_view UnitOf(std::string_view metric);
bool IsOurs(std::string_view metric);

}  // namespace nos::telemetry
