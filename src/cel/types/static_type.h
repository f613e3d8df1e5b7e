// Types of expressions.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "cel/values/dynamic.h"

namespace nos::cel {

enum class TypeKind {
  kDyn,
  kError,
  kBool,
  kBytes,
  kDouble,
  kDuration,
  kInt,
  kList,
  kMap,
  kNull,
  kOpaque,  // has parameters: optional_type(int)
  kString,
  kStruct,
  kTimestamp,
  kType,
  kParam,  // a variable: T in list(T)
  kUint,
};

struct Type {
  TypeKind kind = TypeKind::kDyn;
  std::string name;
  std::vector<const Type*> params;
  int variable = -1;  // the number of a variable that the checker made
  size_t size = 1;    // with all parameters

  bool is(TypeKind other) const { return kind == other; }
  bool IsOptional() const { return kind == TypeKind::kOpaque && name == "optional_type"; }
  // Equal, with the same type variables.
  bool IsExactly(const Type& other) const { return Matches(other, true); }
  // Equal but for the names of type variables.
  bool IsEquivalent(const Type& other) const { return Matches(other, false); }
  // A value of this type can be what `from` describes.
  bool AcceptsType(const Type& from) const;
  // The value's kind, and that of its first element, fits.
  bool AcceptsValue(const Value& value) const;
  std::string ToString() const;

 private:
  bool Matches(const Type& other, bool names) const;
};

// Owns types with parameters. The others are constants. Throws TooComplex for types that no
// sensible expression has: those of nested maps can double with each level.
class TypeStore {
 public:
  struct TooComplex {};
  const Type* List(const Type* element) { return Make(TypeKind::kList, "list", {element}); }
  const Type* Map(const Type* key, const Type* value) {
    return Make(TypeKind::kMap, "map", {key, value});
  }
  const Type* TypeOf(const Type* type) { return Make(TypeKind::kType, "type", {type}); }
  const Type* Optional(const Type* type) {
    return Make(TypeKind::kOpaque, "optional_type", {type});
  }
  const Type* Opaque(std::string_view name, std::vector<const Type*> params) {
    return Make(TypeKind::kOpaque, name, std::move(params));
  }
  const Type* Param(std::string_view name) { return Make(TypeKind::kParam, name, {}); }
  const Type* Variable(int number);
  // The type with other parameters.
  const Type* With(const Type& type, std::vector<const Type*> params) {
    return Make(type.kind, type.name, std::move(params));
  }

 private:
  static constexpr size_t kMaxSize = 10'000;
  const Type* Make(TypeKind kind, std::string_view name, std::vector<const Type*> params);
  std::deque<Type> types_;
};

// The type that a name stands for in expressions; null if there is none. Without parameters.
const Type* FindNamedType(std::string_view name);

namespace types {
extern const Type kDyn, kError, kBool, kBytes, kDouble, kDuration, kInt, kNull, kString, kTimestamp,
    kType, kUint;
extern const Type kList, kMap, kOptional;  // of anything
extern const Type kQuantity, kSemver, kUrl, kFormat, kIp, kCidr, kDevice;
extern const Type kAuthorizer, kPathCheck, kGroupCheck, kResourceCheck, kDecision;
}  // namespace types

}  // namespace nos::cel
