// Index of objects that only some nodes can use, searched by node labels. Objects are numbered,
// better ones first.
//
//   LabelIndex index;
//   index.Add(0, nullptr);                              // usable on any node
//   index.Add(1, &hostname_in_a);
//   index.First(labels, [&](uint32_t i) { return Fits(things[i], labels); });
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cluster/constraints.h"

namespace nos::scheduling {

class LabelIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Adds objects in ascending order. `in`: an In requirement that nodes must satisfy; null: none.
  void Add(uint32_t number, const cluster::SelectorRequirement* in) {
    if (in == nullptr) return anywhere_.push_back(number);
    auto at = std::ranges::find(by_label_, in->key, &ByLabel::first);
    if (at == by_label_.end()) at = by_label_.insert(at, {in->key, {}});
    for (const std::string& value : in->values) at->second[value].push_back(number);
  }

  // The first object for which `fits` returns true on a node with these labels, or kNone.
  template <typename Predicate>
  uint32_t First(const cluster::StringMap& labels, Predicate fits) const {
    uint32_t first = FirstOf(anywhere_, kNone, fits);
    for (const auto& [key, by_value] : by_label_) {
      const auto label = labels.find(key);
      if (label == labels.end()) continue;
      const auto numbers = by_value.find(label->second);
      if (numbers != by_value.end()) first = FirstOf(numbers->second, first, fits);
    }
    return first;
  }

 private:
  using Numbers = std::vector<uint32_t>;
  using ByLabel = std::pair<std::string, std::unordered_map<std::string, Numbers>>;

  template <typename Predicate>
  static uint32_t FirstOf(const Numbers& numbers, uint32_t before, Predicate fits) {
    for (const uint32_t number : numbers) {
      if (number >= before) break;
      if (fits(number)) return number;
    }
    return before;
  }

  Numbers anywhere_;
  std::vector<ByLabel> by_label_;
};

}  // namespace nos::scheduling
