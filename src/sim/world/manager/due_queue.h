// Keys with the time of their next visit, each at most once. One thread.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/clock.h"

namespace nos::sim {

template <typename Key>
class DueQueue {
 public:
  // A key that is here already keeps the earlier time.
  void Put(const Key& key, Time when) {
    const auto [found, fresh] = when_.emplace(key, when);
    if (!fresh) {
      if (found->second <= when) return;
      order_.erase({found->second, key});
      found->second = when;
    }
    order_.emplace(when, key);
  }
  // Removes and returns the first key that is due.
  std::optional<Key> Take(Time now) {
    if (order_.empty() || order_.begin()->first > now) return std::nullopt;
    const Key key = order_.begin()->second;
    order_.erase(order_.begin());
    when_.erase(key);
    return key;
  }
  std::optional<Time> Next() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first);
  }

 private:
  std::map<Key, Time> when_;
  std::set<std::pair<Time, Key>> order_;
};

}  // namespace nos::sim
