// Lists. A sum of two lists refers to both, so that its cost is constant as upstream; a
// comprehension fills one list in place.
#pragma once

#include "cel/values/dynamic.h"

namespace nos::cel {

class ListValue {
 public:
  // A list over values that live as long as it.
  static const ListValue* Of(Arena& arena, std::span<const Value> values);
  // An empty list that Add() extends in place.
  static const ListValue* Growing(Arena& arena);

  uint64_t size() const { return size_; }
  bool growing() const { return capacity_ != kFixed; }
  // REQUIRES: index < size().
  Value At(uint64_t index) const;

  // The elements of now. REQUIRES: growing().
  const ListValue* Frozen(Arena& arena) const { return Of(arena, {values_, size_}); }

  // The elements of both. Extends `left` itself if it is growing.
  static const ListValue* Add(Arena& arena, const ListValue& left, const ListValue& right);

 private:
  friend class Arena;
  static constexpr uint64_t kFixed = ~uint64_t{0};
  ListValue() = default;
  void Append(Arena& arena, Value value);

  uint64_t size_ = 0;
  uint64_t capacity_ = kFixed;
  uint64_t depth_ = 0;       // of sums within each other
  Value* values_ = nullptr;  // null for the sum of two lists
  const ListValue* left_ = nullptr;
  const ListValue* right_ = nullptr;
};

}  // namespace nos::cel
