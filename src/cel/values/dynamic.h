// A value of CEL: 16 bytes, copied freely. Everything larger lies in an Arena that outlives it, or
// in a device or a program.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "cel/values/arena.h"

namespace nos::cel {

enum class Kind : uint8_t {
  kError,
  kNull,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kDuration,
  kTimestamp,
  kList,
  kMap,
  kType,
  kOptional,
  kQuantity,
  kSemver,
  kIp,
  kCidr,
  kUrl,
  kFormat,
};

class ListValue;
class MapValue;
class Value;
class Amount;
struct Timestamp;
struct Semver;
struct Cidr;
struct IpAddress;
struct Url;
struct NamedFormat;

class Value {
 public:
  constexpr Value() : kind_(Kind::kNull), integer_(0) {}

  static constexpr Value Bool(bool value) { return Value(Kind::kBool, int64_t{value}); }
  static constexpr Value Int(int64_t value) { return Value(Kind::kInt, value); }
  static constexpr Value Uint(uint64_t value) {
    return Value(Kind::kUint, static_cast<int64_t>(value));
  }
  static Value Double(double value) {
    Value result(Kind::kDouble, int64_t{0});
    result.double_ = value;
    return result;
  }
  static constexpr Value String(std::string_view text) { return Value(Kind::kString, text); }
  static constexpr Value Bytes(std::string_view bytes) { return Value(Kind::kBytes, bytes); }
  // Nanoseconds.
  static constexpr Value Duration(int64_t nanos) { return Value(Kind::kDuration, nanos); }
  // The type with this name; the name lives as long as the value.
  static constexpr Value Type(std::string_view name) { return Value(Kind::kType, name); }
  // An error; operators that are not commutative pass it on. The text lives as long as the value.
  static constexpr Value Error(std::string_view text) { return Value(Kind::kError, text); }
  static Value Of(const ListValue* list) { return Value(Kind::kList, list); }
  static Value Of(const MapValue* map) { return Value(Kind::kMap, map); }
  static Value Of(const Timestamp* time) { return Value(Kind::kTimestamp, time); }
  // A computed quantity is, as upstream, not equal to anything on the left of "==".
  static Value Of(const Amount* quantity, bool computed = false) {
    Value result(Kind::kQuantity, quantity);
    result.size_ = computed ? 1 : 0;
    return result;
  }
  static Value Of(const Semver* version) { return Value(Kind::kSemver, version); }
  static Value Of(const IpAddress* address) { return Value(Kind::kIp, address); }
  static Value Of(const Cidr* cidr) { return Value(Kind::kCidr, cidr); }
  static Value Of(const Url* url) { return Value(Kind::kUrl, url); }
  static Value Of(const NamedFormat* format) { return Value(Kind::kFormat, format); }
  static Value None() { return Value(Kind::kOptional, static_cast<const Value*>(nullptr)); }
  static Value Some(Arena& arena, Value value) {
    return Value(Kind::kOptional, static_cast<const Value*>(arena.New<Value>(value)));
  }

  constexpr Kind kind() const { return kind_; }
  constexpr bool is(Kind kind) const { return kind_ == kind; }
  constexpr bool IsError() const { return kind_ == Kind::kError; }
  constexpr bool IsTrue() const { return kind_ == Kind::kBool && integer_ != 0; }
  constexpr bool IsFalse() const { return kind_ == Kind::kBool && integer_ == 0; }

  // REQUIRES for all of these: the kind.
  constexpr bool boolean() const { return integer_ != 0; }
  constexpr int64_t integer() const { return integer_; }
  constexpr uint64_t natural() const { return static_cast<uint64_t>(integer_); }
  constexpr double number() const { return double_; }
  constexpr std::string_view text() const { return {text_, size_}; }
  const ListValue& list() const { return *static_cast<const ListValue*>(object_); }
  const MapValue& map() const { return *static_cast<const MapValue*>(object_); }
  const Timestamp& timestamp() const { return *static_cast<const Timestamp*>(object_); }
  const Amount& quantity() const { return *static_cast<const Amount*>(object_); }
  bool computed() const { return size_ != 0; }
  const Semver& semver() const { return *static_cast<const Semver*>(object_); }
  const IpAddress& ip() const { return *static_cast<const IpAddress*>(object_); }
  const Cidr& cidr() const { return *static_cast<const Cidr*>(object_); }
  const Url& url() const { return *static_cast<const Url*>(object_); }
  const NamedFormat& format() const { return *static_cast<const NamedFormat*>(object_); }
  // The optional's value, or null if it is none.
  const Value* optional() const { return static_cast<const Value*>(object_); }
  // Identity of what lies in the arena.
  const void* object() const { return object_; }

 private:
  constexpr Value(Kind kind, int64_t value) : kind_(kind), integer_(value) {}
  constexpr Value(Kind kind, std::string_view text)
      : kind_(kind), size_(static_cast<uint32_t>(text.size())), text_(text.data()) {}
  Value(Kind kind, const void* object) : kind_(kind), object_(object) {}

  Kind kind_;
  uint32_t size_ = 0;
  union {
    int64_t integer_;
    double double_;
    const char* text_;
    const void* object_;
  };
};
static_assert(sizeof(Value) == 16);

// The error of every function that is called with values of the wrong types.
constexpr Value NoSuchOverload() { return Value::Error("no such overload"); }

// The name of the value's type: "int", "list", "kubernetes.Quantity".
std::string_view TypeName(const Value& value);

}  // namespace nos::cel
