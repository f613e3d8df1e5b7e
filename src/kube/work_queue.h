// A queue of keys to reconcile, with delays and per-key back-off: a key is queued at most once and
// processed by one worker at a time. It owns no thread and reads no clock; callers pass the time.
//
//   queue.Add("gpu-7", now);
//   while (auto key = queue.Take(now)) {
//     ReconcileResult result = Reconcile(*key);
//     if (failed) queue.Retry(*key, now); else queue.Forget(*key);
//     queue.Done(*key);
//   }
//
// A key added while it is being processed returns to the queue at Done. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/back_off.h"

namespace nos::kube {

class WorkQueue {
 public:
  explicit WorkQueue(BackOff back_off = {}) : back_off_(back_off) {}

  // Makes the key due at `when` at the latest: an earlier due time stays.
  void Add(const std::string& key, Time when);
  // After a failure: due after this key's back-off, unless Add makes it due earlier.
  void Retry(const std::string& key, Time now);
  // After a success: the key's next failure starts from the base delay.
  void Forget(const std::string& key);
  // True if the key failed since it was last forgotten. Callers without news should not shorten its
  // back-off.
  bool Failing(const std::string& key) const;
  // Takes the key that has been due longest; none if nothing is due.
  std::optional<std::string> Take(Time now);
  void Done(const std::string& key);
  // The time when Take next returns a key. Keys being processed do not count.
  std::optional<Time> NextDue() const;
  size_t size() const;  // queued keys

 private:
  void AddLocked(const std::string& key, Time when);

  mutable std::mutex mutex_;
  BackOff back_off_;
  uint64_t sequence_ = 0;  // first come, first served among equal times
  std::map<std::pair<Time, uint64_t>, std::string> by_time_;
  std::map<std::string, std::pair<Time, uint64_t>> waiting_;
  std::map<std::string, std::optional<Time>> active_;  // key being processed -> time to requeue it
  std::map<std::string, int> failures_;
};

}  // namespace nos::kube
