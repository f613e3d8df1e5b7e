#include "kube/workers.h"

#include <utility>

namespace nos::kube {

Workers::Workers(Transport& transport, int threads) : transport_(transport) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
}

Workers::~Workers() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    calls_.clear();
  }
  posted_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::Post(Call call) {
  {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(std::move(call));
  }
  posted_.notify_one();
}

size_t Workers::pending() const {
  const std::scoped_lock lock(mutex_);
  return calls_.size() + under_way_;
}

void Workers::Run() {
  Client client(transport_);
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return stop_ || !calls_.empty(); });
    if (stop_) return;
    const Call call = std::move(calls_.front());
    calls_.pop_front();
    ++under_way_;
    lock.unlock();
    call(client);
    lock.lock();
    --under_way_;
  }
}

}  // namespace nos::kube
