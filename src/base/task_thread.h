// A thread that runs functions one after the other, in the order of posting.
//
//   TaskThread thread(64);
//   if (!thread.Post([...] { ... })) ...   // 64 functions wait already
//
// Thread-safe; functions may post others.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace nos {

class TaskThread {
 public:
  // `limit`: functions that may wait.
  explicit TaskThread(size_t limit);
  // Waits for the running function and drops those that wait.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  // False: too many wait already, or the thread is ending.
  bool Post(std::function<void()> task);

 private:
  void Run();

  const size_t limit_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::function<void()>> tasks_;
  bool stop_ = false;
  std::thread thread_;  // last: uses the others
};

}  // namespace nos
