// Time as a value and as an injected service. Nothing that decides reads a clock: callers pass
// Time.
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

// Begins with the system's time and then goes on evenly, however that is set.
class SteadyClock final : public Clock {
 public:
  Time Now() const override {
    return wall_ + std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - steady_);
  }

 private:
  Time wall_ = SystemClock().Now();
  std::chrono::steady_clock::time_point steady_ = std::chrono::steady_clock::now();
};

// A clock that moves when told to: tests and the simulator. Not thread-safe.
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
// Accepts RFC 3339 with fractional seconds and any offset. Years before 1678 or after 2261, which
// Time cannot hold, are taken as those. Error: kInvalid.
Result<Time> ParseTime(std::string_view text);
// Go's duration text as Kubernetes uses it: "300ms", "1.5s", "1h30m". Error: kInvalid.
Result<Duration> ParseDuration(std::string_view text);
// Seconds as a double, and back.
inline double ToSeconds(Duration d) { return std::chrono::duration<double>(d).count(); }
inline Duration FromSeconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}
// A short age for people: "0s", "45s", "3m12s", "5h3m", "12d" (as kubectl's AGE column).
std::string FormatAge(Duration d);

}  // namespace nos
