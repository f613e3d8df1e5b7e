// The metrics that nos itself tells, and what they are counted in.
#pragma once

#include <string_view>

namespace nos::telemetry {

// "W", "MiB", "ratio"; "" where it has none or nobody knows it.
std::string_view UnitOf(std::string_view metric);
bool IsOurs(std::string_view metric);

}  // namespace nos::telemetry
