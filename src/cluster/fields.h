// Reads typed values from JSON, text or tree, in one pass, and records the first error with its
// path.
//
//   Status error = ReadFields(json, [&](Field& root) {
//     root.Members(At("metadata", [&](Field& metadata) { metadata.Members(At("name", name)); }),
//                  At("items", items, ReadItem));    // void ReadItem(Field&, Item&)
//   });                        // "items[1].name: must be a string, not a number"
//
// A missing or null value leaves the target unchanged; null in a list is an error. Each field is
// read once, in the order of the text.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/quantity.h"
#include "base/status.h"
#include "cluster/objects.h"
#include "codec/cursor.h"

namespace nos::cluster {

class Field;

// A known member of an object: its key and its reader.
template <typename Reader>
struct Member {
  std::string_view key;
  Reader read;  // void(Field&)
};

class Field {
 public:
  Field(Cursor& value, Status& error) : value_(value), error_(error) {}

  bool Present() const { return value_.kind() != Cursor::Kind::kNull; }
  void Read(std::string& out);
  void Read(bool& out);
  void Read(int32_t& out);
  void Read(int64_t& out);
  void Read(std::optional<int32_t>& out);
  void Read(Time& out);
  void Read(std::optional<Time>& out);
  void Read(Quantity& out);  // from a string or a number
  void Read(StringMap& out);
  void Read(ResourceList& out);
  void Read(std::vector<std::string>& out);
  // Appends one element to `out` for each list element, filled by `read(Field&, T&)`.
  template <typename T, typename Function>
  void Read(std::vector<T>& out, Function read) {
    out.clear();
    Elements([&](Field& element) { read(element, out.emplace_back()); });
  }
  template <typename T, typename Function>
  void Read(std::optional<T>& out, Function read) {
    if (Present()) read(*this, out.emplace());
  }
  template <typename T, typename Function>
  void Read(T& out, Function read) {
    read(*this, out);
  }
  // Visits each element of a list.
  void Each(FunctionRef<void(Field& element)> visit) { Elements(visit); }
  // Visits each entry of a map, whose keys are data. Null is an error.
  void Entries(FunctionRef<void(std::string_view key, Field& value)> visit);
  // The value as JSON text.
  void ReadRaw(std::string& out);
  // Reads the known members of an object and skips the others.
  template <typename... Readers>
  void Members(const Member<Readers>&... known) {
    ForEach([&](std::string_view key, Field& field) {
      (void)((key == known.key ? (known.read(field), true) : false) || ...);
    });
  }

  // Records an error at this path, unless an error is recorded already.
  void Fail(std::string_view what) const;

 private:
  static constexpr size_t kNoIndex = std::numeric_limits<size_t>::max();
  Field(Cursor& value, const Field& parent, std::string_view key, size_t index)
      : value_(value), parent_(&parent), key_(key), index_(index), error_(parent.error_) {}

  template <typename Integer>
  void ReadInteger(Integer& out);
  void ForEach(FunctionRef<void(std::string_view key, Field& member)> visit);
  void Elements(FunctionRef<void(Field& element)> visit);
  // Records "must be `expected`" and returns false if the value is present and of another kind.
  bool Expect(Cursor::Kind kind, std::string_view expected);
  std::string Path() const;

  Cursor& value_;
  const Field* parent_ = nullptr;
  std::string_view key_;     // for members of an object
  size_t index_ = kNoIndex;  // for elements of a list
  bool map_entry_ = false;   // the key is data, not a field name: printed in brackets
  Status& error_;
};

// `to...`: the arguments of Field::Read, or a function of the field.
template <typename T, typename... Function>
  requires requires(Field& field, T& to, Function... read) { field.Read(to, read...); }
auto At(std::string_view key, T& to, Function... read) {
  auto reader = [&to, read...](Field& field) { field.Read(to, read...); };
  return Member<decltype(reader)>{key, std::move(reader)};
}
template <typename Function>
  requires requires(Field& field, Function read) { read(field); }
auto At(std::string_view key, Function read) {
  return Member<Function>{key, std::move(read)};
}

// Error: kInvalid: the first error, or that the text is not JSON.
Status ReadFields(JsonSource json, FunctionRef<void(Field& root)> read);

}  // namespace nos::cluster
