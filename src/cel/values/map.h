// Maps: those that expressions make, and views of a device.
#pragma once

#include <optional>

#include "cel/values/dynamic.h"

namespace nos::cel {

struct MapEntry {
  Value key;
  Value value;
};

class MapValue {
 public:
  virtual uint64_t size() const = 0;
  // A key of another numeric type matches if it is equal.
  virtual std::optional<Value> Find(const Value& key) const = 0;
  // Like Find(), without a default that the map may have.
  virtual bool Contains(const Value& key) const { return Find(key).has_value(); }
  // REQUIRES: index < size(). In no particular order.
  virtual MapEntry At(uint64_t index) const = 0;
  virtual bool growing() const { return false; }

 protected:
  ~MapValue() = default;
};

// A map made by an expression. Lookup is by hash once it is large.
class TableMap final : public MapValue {
 public:
  static TableMap* New(Arena& arena, size_t capacity, bool growing);

  uint64_t size() const override { return size_; }
  std::optional<Value> Find(const Value& key) const override;
  MapEntry At(uint64_t index) const override { return entries_[index]; }
  bool growing() const override { return growing_; }

  // Replaces the value of a key that is there. Throws Cancelled for keys that upstream cannot hash.
  void Put(Arena& arena, const Value& key, const Value& value);
  void Erase(const Value& key);
  // The same entries, of a map that does not grow.
  const TableMap* Frozen(Arena& arena) const;

 private:
  TableMap() = default;
  int64_t Index(const Value& key) const;
  void Rehash(Arena& arena);

  MapEntry* entries_ = nullptr;
  uint32_t* slots_ = nullptr;  // open addressing, index + 1; null while small
  uint64_t size_ = 0;
  uint64_t capacity_ = 0;
  uint64_t slot_count_ = 0;
  bool growing_ = false;
};

}  // namespace nos::cel
