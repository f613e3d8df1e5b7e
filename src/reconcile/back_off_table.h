// Keys that failed and back off, each for longer with every failure in a row.
//
//   BackOffTable<> nodes({seconds(1), minutes(10)});
//   nodes.Failed("gpu-7", now);
//   if (nodes.Resting("gpu-7", now)) ...
//   nodes.Forget("gpu-7");                  // after a success
//   wake up at nodes.NextEnd(now)
//
// Reads no clock. Owned by one thread.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/back_off.h"

namespace nos::reconcile {

// Note: what is kept with a key, for example its last error.
template <typename Key = std::string, typename Note = std::monostate>
class BackOffTable {
 public:
  struct Entry {
    int failures = 0;  // in a row
    Time until{};      // end of the back-off
    Note note{};
    bool ended = false;  // TakeEnded has returned it
  };

  explicit BackOffTable(BackOff pauses) : pauses_(pauses) {}

  // Counts a failure and begins the back-off.
  Entry& Failed(const Key& key, Time now) { return Failed(key, now, pauses_); }
  // The same, with other pauses than those of the table.
  Entry& Failed(const Key& key, Time now, const BackOff& pauses) {
    Entry& entry = entries_[key];
    entry.until = now + pauses.After(++entry.failures);
    entry.ended = false;
    return entry;
  }
  // The same, but a failure long after the end of the last back-off, by the limit of all pauses,
  // starts a new series.
  Entry& FailedWithReset(const Key& key, Time now) {
    Entry& entry = entries_[key];
    if (now - entry.until >= pauses_.limit) entry.failures = 0;
    return Failed(key, now);
  }
  // Begins a back-off of the longest duration without counting a failure.
  Entry& RestLongest(const Key& key, Time now) {
    Entry& entry = entries_[key];
    entry.until = now + pauses_.limit;
    return entry;
  }

  void Forget(const Key& key) { entries_.erase(key); }
  void Clear() { entries_.clear(); }
  // Forgets each entry for which `predicate(key, entry)` is true.
  template <typename Predicate>
  void ForgetIf(Predicate predicate) {
    std::erase_if(entries_, [&](const auto& item) { return predicate(item.first, item.second); });
  }

  bool Resting(const Key& key, Time now) const {
    const Entry* entry = Find(key);
    return entry != nullptr && entry->until > now;
  }
  // Null: the key has not failed since it was last forgotten.
  const Entry* Find(const Key& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? nullptr : &found->second;
  }
  const std::map<Key, Entry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  const BackOff& pauses() const { return pauses_; }

  // When the next back-off ends. Absent: no key backs off.
  std::optional<Time> NextEnd(Time now) const {
    std::optional<Time> next;
    for (const auto& [key, entry] : entries_) {
      if (entry.until > now) next = std::min(next.value_or(entry.until), entry.until);
    }
    return next;
  }
  // When TakeEnded returns a key next. Absent: not before another failure.
  std::optional<Time> NextToTake() const {
    std::optional<Time> next;
    for (const auto& [key, entry] : entries_) {
      if (!entry.ended) next = std::min(next.value_or(entry.until), entry.until);
    }
    return next;
  }
  // The keys whose back-off has ended since the last call. Forgets those that have not failed for
  // the limit of all pauses since.
  std::vector<Key> TakeEnded(Time now) {
    std::vector<Key> ended;
    for (auto& [key, entry] : entries_) {
      if (entry.until <= now && !std::exchange(entry.ended, true)) ended.push_back(key);
    }
    ForgetIf([&](const Key&, const Entry& entry) {
      return entry.ended && now - entry.until > pauses_.limit;
    });
    return ended;
  }

 private:
  BackOff pauses_;
  std::map<Key, Entry> entries_;
};

}  // namespace nos::reconcile
