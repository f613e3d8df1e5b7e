// A steady clock that also counts the time during which the machine was suspended.
//
//   const BootClock clock;
//   if (clock.Now() < lease_ends) ...   // not true after a night of sleep
//
// Linux: CLOCK_BOOTTIME, where SteadyClock is CLOCK_MONOTONIC, which stands still meanwhile. A
// hypervisor that pauses a virtual machine stops both.
#pragma once

#include <ctime>

#include "base/clock.h"

namespace nos {

// Starts at the system's time; later changes of the system clock do not affect it.
class BootClock final : public Clock {
 public:
  Time Now() const override { return wall_ + (SinceBoot() - boot_); }

 private:
  static Duration SinceBoot() {
    timespec time{};
    clock_gettime(CLOCK_BOOTTIME, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  Time wall_ = SystemClock().Now();
  Duration boot_ = SinceBoot();
};

}  // namespace nos
