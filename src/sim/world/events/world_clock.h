// Virtual time. Written by the world's one thread, read by any: requests from outside arrive on
// threads of their own.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace nos::sim {

class WorldClock final : public Clock {
 public:
  explicit WorldClock(Time start) : now_(start.time_since_epoch().count()) {}
  Time Now() const override { return Time(Duration(now_.load(std::memory_order_relaxed))); }
  // Never goes back.
  void AdvanceTo(Time t) {
    if (t > Now()) now_.store(t.time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<Duration::rep> now_;
};

}  // namespace nos::sim
