// Concurrency limiter: N running, M queued, the rest rejected.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>

namespace nos::telemetryserver {

class ConcurrencyLimiter {
 public:
  ConcurrencyLimiter(size_t at_once, size_t waiting) : at_once_(at_once), most_waiting_(waiting) {}

  class Turn {
   public:
    explicit Turn(ConcurrencyLimiter& turns) : turns_(turns) {}
    ~Turn() {
      const std::scoped_lock lock(turns_.mutex_);
      --turns_.under_way_;
      turns_.over_.notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    ConcurrencyLimiter& turns_;
  };
  // Blocks. Null: the queue is full.
  std::unique_ptr<Turn> Begin() {
    std::unique_lock lock(mutex_);
    if (under_way_ >= at_once_ && waiting_ >= most_waiting_) return nullptr;
    ++waiting_;
    over_.wait(lock, [this] { return under_way_ < at_once_; });
    --waiting_;
    ++under_way_;
    return std::make_unique<Turn>(*this);
  }

 private:
  const size_t at_once_, most_waiting_;
  std::mutex mutex_;
  std::condition_variable over_;
  size_t under_way_ = 0, waiting_ = 0;
};

}  // namespace nos::telemetryserver
