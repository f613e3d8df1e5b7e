#include "kube/work_queue.h"

#include <algorithm>

namespace nos::kube {

void WorkQueue::Add(const std::string& key, Time when) {
  const std::scoped_lock lock(mutex_);
  AddLocked(key, when);
}

void WorkQueue::AddLocked(const std::string& key, Time when) {
  if (const auto active = active_.find(key); active != active_.end()) {
    active->second = std::min(active->second.value_or(when), when);
    return;
  }
  if (const auto waiting = waiting_.find(key); waiting != waiting_.end()) {
    if (waiting->second.first <= when) return;
    by_time_.erase(waiting->second);
  }
  const std::pair place{when, sequence_++};
  waiting_[key] = place;
  by_time_[place] = key;
}

void WorkQueue::Retry(const std::string& key, Time now) {
  const std::scoped_lock lock(mutex_);
  AddLocked(key, now + back_off_.After(++failures_[key]));
}

void WorkQueue::Forget(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  failures_.erase(key);
}

bool WorkQueue::Failing(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  return failures_.contains(key);
}

std::optional<std::string> WorkQueue::Take(Time now) {
  const std::scoped_lock lock(mutex_);
  if (by_time_.empty() || by_time_.begin()->first.first > now) return std::nullopt;
  std::string key = std::move(by_time_.extract(by_time_.begin()).mapped());
  waiting_.erase(key);
  active_[key] = std::nullopt;
  return key;
}

void WorkQueue::Done(const std::string& key) {
  const std::scoped_lock lock(mutex_);
  const auto active = active_.extract(key);
  if (active.empty()) return;
  if (const std::optional<Time>& again = active.mapped()) AddLocked(key, *again);
}

std::optional<Time> WorkQueue::NextDue() const {
  const std::scoped_lock lock(mutex_);
  if (by_time_.empty()) return std::nullopt;
  return by_time_.begin()->first.first;
}

size_t WorkQueue::size() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.size();
}

}  // namespace nos::kube
