#include "cel/values/map.h"

#include <algorithm>
#include <functional>

#include "cel/values/cancelled.h"
#include "cel/values/equality.h"
#include "cel/values/numbers.h"

namespace nos::cel {
namespace {

constexpr uint64_t kLinear = 8;

}  // namespace

TableMap* TableMap::New(Arena& arena, size_t capacity, bool growing) {
  auto* const map = new (arena.Allocate(sizeof(TableMap))) TableMap;
  map->entries_ = arena.NewArray<MapEntry>(capacity).data();
  map->capacity_ = capacity;
  map->growing_ = growing;
  return map;
}

int64_t TableMap::Index(const Value& key) const {
  if (slots_ == nullptr) {
    for (uint64_t i = 0; i < size_; ++i) {
      if (SameKey(entries_[i].key, key)) return static_cast<int64_t>(i);
    }
    return -1;
  }
  for (uint64_t slot = HashKey(key) % slot_count_; slots_[slot] != 0;
       slot = (slot + 1) % slot_count_) {
    if (SameKey(entries_[slots_[slot] - 1].key, key)) return slots_[slot] - 1;
  }
  return -1;
}

void TableMap::Rehash(Arena& arena) {
  slot_count_ = std::max<uint64_t>(32, capacity_ * 2);
  slots_ = arena.NewArray<uint32_t>(slot_count_).data();
  std::fill_n(slots_, slot_count_, 0);
  for (uint64_t i = 0; i < size_; ++i) {
    uint64_t slot = HashKey(entries_[i].key) % slot_count_;
    while (slots_[slot] != 0) slot = (slot + 1) % slot_count_;
    slots_[slot] = static_cast<uint32_t>(i + 1);
  }
}

void TableMap::Put(Arena& arena, const Value& key, const Value& value) {
  CheckHashable(key);
  const int64_t found = Index(key);
  if (found >= 0) {
    entries_[found].value = value;
    return;
  }
  if (size_ == capacity_) {
    capacity_ = std::max<uint64_t>(8, capacity_ * 2);
    MapEntry* const entries = arena.NewArray<MapEntry>(capacity_).data();
    std::copy_n(entries_, size_, entries);
    entries_ = entries;
    if (slots_ != nullptr) Rehash(arena);
  }
  entries_[size_++] = {key, value};
  if (slots_ != nullptr) {
    uint64_t slot = HashKey(key) % slot_count_;
    while (slots_[slot] != 0) slot = (slot + 1) % slot_count_;
    slots_[slot] = static_cast<uint32_t>(size_);
  } else if (size_ > kLinear) {
    Rehash(arena);
  }
}

void TableMap::Erase(const Value& key) {
  CheckHashable(key);
  const int64_t found = Index(key);
  if (found < 0) return;
  std::copy(entries_ + found + 1, entries_ + size_, entries_ + found);
  --size_;
  // Rare: an optional entry that is none hides an earlier one. Searching all is right again.
  slots_ = nullptr;
}

const TableMap* TableMap::Frozen(Arena& arena) const {
  auto* const map = new (arena.Allocate(sizeof(TableMap))) TableMap(*this);
  map->growing_ = false;
  return map;
}

std::optional<Value> TableMap::Find(const Value& key) const {
  if (size_ == 0) return std::nullopt;
  CheckHashable(key);
  int64_t found = Index(key);
  if (found < 0) {
    if (key.is(Kind::kDouble)) {
      if (const auto integer = LosslessInt(key.number())) found = Index(Value::Int(*integer));
      if (found < 0) {
        if (const auto natural = LosslessUint(key.number())) found = Index(Value::Uint(*natural));
      }
    } else if (key.is(Kind::kInt) && key.integer() >= 0) {
      found = Index(Value::Uint(key.natural()));
    } else if (key.is(Kind::kUint) && key.integer() >= 0) {
      found = Index(Value::Int(key.integer()));
    }
  }
  if (found < 0) return std::nullopt;
  return entries_[found].value;
}

}  // namespace nos::cel
