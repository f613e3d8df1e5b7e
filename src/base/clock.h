// Time as a value and as an injected service. Decision code never reads a clock: callers pass Time.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

using Duration = std::chrono::nanoseconds;
using Time = std::chrono::sys_time<Duration>;  // UTC

class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time Now() const = 0;
};

class SystemClock final : public Clock {
 public:
  Time Now() const override { return std::chrono::system_clock::now(); }
};

// Starts at the system's time and advances evenly; later changes of the system clock do not affect
// it.
class SteadyClock final : public Clock {
 public:
  Time Now() const override {
    return wall_ + std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - steady_);
  }

 private:
  Time wall_ = SystemClock().Now();
  std::chrono::steady_clock::time_point steady_ = std::chrono::steady_clock::now();
};

// A clock that only its owner advances, for tests and the simulator. Not thread-safe.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Time start) : now_(start) {}
  Time Now() const override { return now_; }
  void AdvanceTo(Time t) { now_ = t; }
  void Advance(Duration d) { now_ += d; }

 private:
  Time now_;
};

// RFC 3339 in UTC with second precision, as Kubernetes writes metav1.Time: "2026-01-02T03:04:05Z".
std::string FormatTime(Time t);
// Accepts RFC 3339 with fractional seconds and any offset. Time holds the years 1678 to 2261;
// earlier and later years are clamped to these. Error: kInvalid.
Result<Time> ParseTime(std::string_view text);
// Go's duration syntax as Kubernetes uses it: "300ms", "1.5s", "1h30m". Error: kInvalid.
Result<Duration> ParseDuration(std::string_view text);
// Converts between seconds as a double and Duration.
inline double ToSeconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline Duration FromSeconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}
// A short age for people: "0s", "45s", "3m12s", "5h3m", "12d" (as kubectl's AGE column).
std::string FormatAge(Duration d);

}  // namespace nos
