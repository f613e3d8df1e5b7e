// Wakes a thread that has nothing to do. Rung before the wait, the wait ends at once.
//
//   Bell bell;
//   stream->OnReady([&] { bell.Ring(); });
//   bell.Wait(std::chrono::seconds(5));
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/clock.h"

namespace nos {

class Bell {
 public:
  void Ring() {
    const std::scoped_lock lock(mutex_);
    rung_ = true;
    changed_.notify_all();
  }
  // Until it has been rung since the last wait, or the time is up. Returns whether it was rung.
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
