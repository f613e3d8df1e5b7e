// The values that were used last.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace nos::dra {

// Keeps at most `max_count` values with a total weight of at most `max_weight`, but always the
// newest one.
template <typename Key, typename Value, typename Hash>
class Recent {
 public:
  Recent(size_t max_count, size_t max_weight) : max_count_(max_count), max_weight_(max_weight) {}

  // The value of the key, made by make() -> pair(value, weight) if it is not remembered. Valid
  // until the next call.
  template <typename Make>
  Value& Get(const Key& key, Make make) {
    const auto found = index_.find(key);
    if (found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->value;
    }
    auto [value, weight] = make();
    entries_.push_front({key, std::move(value), weight});
    index_.emplace(key, entries_.begin());
    weight_ += weight;
    while (entries_.size() > 1 && (entries_.size() > max_count_ || weight_ > max_weight_)) {
      weight_ -= entries_.back().weight;
      index_.erase(entries_.back().key);
      entries_.pop_back();
    }
    return entries_.front().value;
  }

 private:
  struct Entry {
    Key key;
    Value value;
    size_t weight = 0;
  };
  size_t max_count_, max_weight_;
  size_t weight_ = 0;
  std::list<Entry> entries_;  // the last used first
  std::unordered_map<Key, typename std::list<Entry>::iterator, Hash> index_;
};

}  // namespace nos::dra
