#include "base/task_thread.h"

#include <utility>

namespace nos {

TaskThread::TaskThread(size_t limit) : limit_(limit), thread_([this] { Run(); }) {}

TaskThread::~TaskThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_all();
  thread_.join();
}

bool TaskThread::Post(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    if (stop_ || tasks_.size() >= limit_) return false;
    tasks_.push_back(std::move(task));
  }
  posted_.notify_one();
  return true;
}

void TaskThread::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (stop_) return;
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
  }
}

}  // namespace nos
