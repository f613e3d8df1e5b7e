// Reads typed values out of a JSON tree and remembers the first thing that is wrong, with its path.
//
//   Status error;
//   const Field root(json, error);
//   root["metadata"]["name"].Read(name);
//   root["spec"]["containers"].ForEach([&](const Field& item) { ... });
//   if (!error.ok()) return error;     // "spec.containers[1].name: must be a string, not a number"
//
// A missing or null value leaves the target as it is. A child refers to its parent, which must
// outlive it; chained temporaries do. Internal to this room.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::cluster {

class Field {
 public:
  Field(const Json& value, Status& error) : value_(&value), error_(&error) {}

  // The member of an object; absent when this is absent.
  Field operator[](std::string_view key) const;

  bool Present() const { return value_ != nullptr && !value_->is_null(); }
  void Read(std::string& out) const;
  void Read(bool& out) const;
  void Read(int32_t& out) const;
  void Read(Time& out) const;
  void Read(std::optional<Time>& out) const;
  void Read(Quantity& out) const;  // from a string or a number
  void Read(StringMap& out) const;
  void Read(ResourceList& out) const;
  void Read(std::vector<std::string>& out) const;
  // One element of `out` for each of the array, filled by `read(const Field&, T&)`.
  template <typename T, typename Function>
  void Read(std::vector<T>& out, Function read) const {
    const JsonArray* array = Array();
    if (array == nullptr) return;
    for (size_t i = 0; i < array->size(); ++i) {
      read(Field(&(*array)[i], this, {}, i, *error_), out.emplace_back());
    }
  }

  // Records an error here, unless there is one already.
  void Fail(std::string_view what) const;

 private:
  static constexpr size_t kNoIndex = std::numeric_limits<size_t>::max();
  Field(const Json* value, const Field* parent, std::string_view key, size_t index, Status& error)
      : value_(value), parent_(parent), key_(key), index_(index), error_(&error) {}

  const JsonArray* Array() const;
  const JsonObject* Object() const;
  // Records "must be `expected`" and returns false when present but not as expected.
  bool Expect(bool matches, std::string_view expected) const;
  std::string Path() const;

  const Json* value_ = nullptr;
  const Field* parent_ = nullptr;
  std::string_view key_;     // of an object's member
  size_t index_ = kNoIndex;  // of an array's element
  bool map_entry_ = false;   // the key is data, not a field name: printed in brackets
  Status* error_;
};

}  // namespace nos::cluster
