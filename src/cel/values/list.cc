#include "cel/values/list.h"

#include <algorithm>

#include "cel/values/cancelled.h"
#include "cel/values/step_limit.h"

namespace nos::cel {

const ListValue* ListValue::Of(Arena& arena, std::span<const Value> values) {
  auto* const list = new (arena.Allocate(sizeof(ListValue))) ListValue;
  list->size_ = values.size();
  list->values_ = const_cast<Value*>(values.data());  // not changed: the list is not growing
  return list;
}

const ListValue* ListValue::Growing(Arena& arena) {
  auto* const list = new (arena.Allocate(sizeof(ListValue))) ListValue;
  list->capacity_ = 0;
  return list;
}

Value ListValue::At(uint64_t index) const {
  constexpr uint64_t kNodesInAStep = 16;
  StepLimit::Spend(depth_ / kNodesInAStep);
  const ListValue* list = this;
  while (list->left_ != nullptr) {
    // A part may have grown since the sum was made.
    const uint64_t left = list->left_->size();
    if (index < left) {
      list = list->left_;
    } else {
      index -= left;
      list = list->right_;
    }
  }
  return list->values_[index];
}

void ListValue::Append(Arena& arena, Value value) {
  if (size_ == capacity_) {
    const uint64_t capacity = std::max<uint64_t>(8, capacity_ * 2);
    Value* const values = arena.NewArray<Value>(capacity).data();
    std::copy_n(values_, size_, values);
    values_ = values;
    capacity_ = capacity;
  }
  values_[size_++] = value;
}

const ListValue* ListValue::Add(Arena& arena, const ListValue& left, const ListValue& right) {
  if (left.growing()) {
    // Only comprehensions make growing lists, and their callers expect that the variable changes.
    auto& list = const_cast<ListValue&>(left);
    const uint64_t size = right.size();
    for (uint64_t i = 0; i < size; ++i) list.Append(arena, right.At(i));
    return &list;
  }
  if (left.size() == 0) return &right;
  if (right.size() == 0) return &left;
  constexpr uint64_t kTop = uint64_t{1} << 62;
  if (left.size() >= kTop && right.size() >= kTop) {
    throw Cancelled(Cancelled::Cause::kInternal, "internal error: list too long");
  }
  auto* const list = new (arena.Allocate(sizeof(ListValue))) ListValue;
  list->size_ = left.size() + right.size();
  list->left_ = &left;
  list->right_ = &right;
  list->depth_ = 1 + std::max(left.depth_, right.depth_);
  return list;
}

}  // namespace nos::cel
