// Threads that make API calls, so that the deciding thread need not wait for them.
//
//   Workers workers(transport, 16);
//   workers.Post([=, &inbox](Client& client) { inbox.Put(client.Bind(ns, pod, node)); });
//
// Calls start in the order of posting; with several threads several run at once. A call's result
// must be stored in a thread-safe way, as in an Inbox. Thread-safe.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "kube/client.h"

namespace nos::kube {

class Workers {
 public:
  using Call = std::function<void(Client&)>;

  Workers(Transport& transport, int threads);
  // Waits for running calls and drops the queued ones.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void Post(Call call);
  // Number of calls posted and not finished.
  size_t pending() const;

 private:
  void Run();

  Transport& transport_;
  mutable std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Call> calls_;
  size_t under_way_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

// Collects values from other threads for one reader. Thread-safe.
template <typename T>
class Inbox {
 public:
  void Put(T item) {
    const std::scoped_lock lock(mutex_);
    items_.push_back(std::move(item));
  }
  std::vector<T> TakeAll() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(items_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<T> items_;
};

}  // namespace nos::kube
