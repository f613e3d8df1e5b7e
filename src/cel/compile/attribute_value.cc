#include "cel/compile/attribute_value.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

#include "cel/values/cancelled.h"
#include "cel/values/list.h"
#include "cel/values/semver.h"

namespace nos::cel {
namespace {

// The API allows 64 values in one attribute; a list that an expression makes may have more, and one
// that doubles itself has billions for a few bytes.
constexpr uint64_t kMaxElements = 100'000;

bool IsElementType(const Type& type) {
  return type.is(TypeKind::kBool) || type.is(TypeKind::kInt) || type.is(TypeKind::kString) ||
         type.is(TypeKind::kDyn) || type.IsExactly(types::kSemver);
}

Status Unsupported(const Value& value) {
  return Invalid(fmt::format("an attribute cannot have the type {}", TypeName(value)));
}

// Optional values are looked into, as upstream does it.
Value Inner(Value value) {
  while (value.is(Kind::kOptional) && value.optional() != nullptr) value = *value.optional();
  return value;
}

template <typename T>
std::optional<T> Scalar(const Value& value);
template <>
std::optional<bool> Scalar<bool>(const Value& value) {
  if (!value.is(Kind::kBool)) return std::nullopt;
  return value.boolean();
}
template <>
std::optional<int64_t> Scalar<int64_t>(const Value& value) {
  if (!value.is(Kind::kInt)) return std::nullopt;
  return value.integer();
}
// A type is the text of its name.
template <>
std::optional<std::string> Scalar<std::string>(const Value& value) {
  if (!value.is(Kind::kString) && !value.is(Kind::kType)) return std::nullopt;
  return std::string(value.text());
}
template <>
std::optional<Version> Scalar<Version>(const Value& value) {
  if (!value.is(Kind::kSemver)) return std::nullopt;
  return Version{std::string(value.semver().text)};
}

template <typename T>
Status ReadList(const ListValue& list, AttributeValue& to) {
  std::vector<T> values;
  for (uint64_t i = 0; i < list.size(); ++i) {
    std::optional<T> element = Scalar<T>(Inner(list.At(i)));
    if (!element) {
      return Invalid(fmt::format("element {} of the list has the type {}, unlike those before", i,
                                 TypeName(list.At(i))));
    }
    values.push_back(std::move(*element));
  }
  to = std::move(values);
  return Status::Ok();
}

Status ToList(const ListValue& list, AttributeValue& to) {
  if (list.size() > kMaxElements) {
    throw Cancelled(Cancelled::Cause::kLimit, "too many elements for an attribute");
  }
  if (list.size() == 0) {
    to = std::vector<std::string>();
    return Status::Ok();
  }
  const Value first = Inner(list.At(0));
  switch (first.kind()) {
    case Kind::kBool:
      return ReadList<bool>(list, to);
    case Kind::kInt:
      return ReadList<int64_t>(list, to);
    case Kind::kString:
    case Kind::kType:
      return ReadList<std::string>(list, to);
    case Kind::kSemver:
      return ReadList<Version>(list, to);
    default:
      return Unsupported(first);
  }
}

}  // namespace

bool IsAttributeType(const Type& type) {
  return IsElementType(type) ||
         (type.is(TypeKind::kList) && type.params.size() == 1 && IsElementType(*type.params[0]));
}

Status ToAttribute(const Value& value, AttributeValue& to) {
  if (value.is(Kind::kList)) return ToList(value.list(), to);
  const Value inner = Inner(value);
  switch (inner.kind()) {
    case Kind::kBool:
      to = inner.boolean();
      return Status::Ok();
    case Kind::kInt:
      to = inner.integer();
      return Status::Ok();
    case Kind::kString:
    case Kind::kType:
      if (auto text = Scalar<std::string>(inner)) to = *std::move(text);
      return Status::Ok();
    case Kind::kSemver:
      if (auto version = Scalar<Version>(inner)) to = *std::move(version);
      return Status::Ok();
    default:
      return Unsupported(inner);
  }
}

}  // namespace nos::cel
