// Virtual time. Written by the world's thread, read by any thread: requests from outside are served
// on threads of their own.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace nos::sim {

class WorldClock final : public Clock {
 public:
  explicit WorldClock(Time start) : now_(start.time_since_epoch().count()) {}
  Time Now() const override { return Time(Duration(now_.load(std::memory_order_relaxed))); }
  // Time never goes back.
  void AdvanceTo(Time t) {
    if (t > Now()) now_.store(t.time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Duration::rep> now_;
};

}  // namespace nos::sim
