// Times and durations as whole milliseconds, the unit of telemetry records.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace nos {

inline int64_t ToMillis(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}
// Since the epoch.
inline int64_t ToMillis(Time time) { return ToMillis(time.time_since_epoch()); }

}  // namespace nos
