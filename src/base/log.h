// Logging: one line per event, a constant message plus key-values, to standard error.
//
//   Log(LogLevel::kInfo, "applied plan", {{"node", name}, {"instances", fmt::to_string(n)}});
//
// A log line is never the only record of a decision: anything an operator acts on is also an Event,
// a condition or a metric. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nos {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

using LogFields = std::vector<std::pair<std::string_view, std::string>>;

// Lines below `level` are dropped. Default: kInfo.
void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view message, const LogFields& fields = {});

}  // namespace nos
