// Merges concurrent calls with the same key: the first caller asks, the others wait for its answer.
//
//   SingleFlight<Reader> flight(8, 6);
//   Result<Reader> reader = flight.Do(key, [&] { return Ask(token); });
//
// Thread-safe. Caches nothing: a call after the answer asks again.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"

namespace nos::cmd {

template <typename T>
class SingleFlight {
 public:
  // Maximum number of callers in total, and per key.
  SingleFlight(size_t most, size_t max_of_one) : most_(most), max_of_one_(max_of_one) {}

  // Errors: errors of `ask`; kUnavailable: too many callers.
  Result<T> Do(const std::string& key, FunctionRef<Result<T>()> ask) {
    std::unique_lock lock(mutex_);
    std::shared_ptr<Flight>& place = flights_[key];
    const bool first = place == nullptr;
    if (first) place = std::make_shared<Flight>();
    const std::shared_ptr<Flight> flight = place;
    if (inside_ >= most_ || flight->people >= max_of_one_) {
      if (first) flights_.erase(key);
      return Status(Code::kUnavailable,
                    "too many requests wait for the API server: retry in some seconds");
    }
    ++inside_;
    ++flight->people;
    if (first) {
      lock.unlock();
      Result<T> answer = ask();
      lock.lock();
      flight->answer = std::move(answer);
      flight->is_over = true;
      flights_.erase(key);
      flight->over.notify_all();
    } else {
      flight->over.wait(lock, [&] { return flight->is_over; });
    }
    --inside_;
    return flight->answer;
  }

 private:
  struct Flight {
    std::condition_variable over;
    bool is_over = false;
    Result<T> answer = Status(Code::kInternal, "the request has no answer");
    size_t people = 0;
  };

  const size_t most_, max_of_one_;
  mutable std::mutex mutex_;
  size_t inside_ = 0;
  std::map<std::string, std::shared_ptr<Flight>> flights_;
};

}  // namespace nos::cmd
