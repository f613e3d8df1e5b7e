// Wakes a waiting thread. A signal sent before the wait ends that wait at once.
//
//   WakeSignal bell;
//   stream->OnReady([&] { bell.Ring(); });
//   bell.Wait(std::chrono::seconds(5));
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"

namespace nos {

class WakeSignal {
 public:
  void Ring() {
    const std::scoped_lock lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  // Waits until it is rung or the time is up. Returns whether it was rung since the last wait.
  bool Wait(Duration at_most) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, at_most, [this] { return rung_; });
    return std::exchange(rung_, false);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool rung_ = false;
};

}  // namespace nos
