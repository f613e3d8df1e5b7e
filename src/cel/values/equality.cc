#include "cel/values/equality.h"

#include <cmath>
#include <functional>
#include <string>

#include "cel/values/amount.h"
#include "cel/values/cancelled.h"
#include "cel/values/list.h"
#include "cel/values/map.h"
#include "cel/values/network.h"
#include "cel/values/numbers.h"
#include "cel/values/runes.h"
#include "cel/values/semver.h"
#include "cel/values/step_limit.h"
#include "cel/values/timestamp.h"
#include "cel/values/url.h"

namespace nos::cel {
namespace {

constexpr uint64_t kMaxSteps = 3'000'000;

int Sign(bool less, bool greater) { return less ? -1 : greater ? 1 : 0; }

int CompareDoubleInt(double left, int64_t right) {
  if (left < -kTwoTo63) return -1;
  if (left > kTwoTo63) return 1;
  const auto other = static_cast<double>(right);
  return Sign(left<other, left> other);
}

int CompareDoubleUint(double left, uint64_t right) {
  if (left < 0) return -1;
  if (left > kTwoTo64) return 1;
  const auto other = static_cast<double>(right);
  return Sign(left<other, left> other);
}

int CompareIntUint(int64_t left, uint64_t right) {
  if (left < 0 || right > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return -1;
  const auto other = static_cast<int64_t>(right);
  return Sign(left<other, left> other);
}

bool IsNumber(Kind kind) {
  return kind == Kind::kInt || kind == Kind::kUint || kind == Kind::kDouble;
}

bool IsNan(const Value& value) { return value.is(Kind::kDouble) && std::isnan(value.number()); }

// REQUIRES: two numbers, no NaN.
int CompareNumbers(const Value& left, const Value& right) {
  switch (left.kind()) {
    case Kind::kDouble:
      if (right.is(Kind::kInt)) return CompareDoubleInt(left.number(), right.integer());
      if (right.is(Kind::kUint)) return CompareDoubleUint(left.number(), right.natural());
      return Sign(left.number() < right.number(), left.number() > right.number());
    case Kind::kInt:
      if (right.is(Kind::kDouble)) return -CompareDoubleInt(right.number(), left.integer());
      if (right.is(Kind::kUint)) return CompareIntUint(left.integer(), right.natural());
      return Sign(left.integer() < right.integer(), left.integer() > right.integer());
    default:
      if (right.is(Kind::kDouble)) return -CompareDoubleUint(right.number(), left.natural());
      if (right.is(Kind::kInt)) return -CompareIntUint(right.integer(), left.natural());
      return Sign(left.natural() < right.natural(), left.natural() > right.natural());
  }
}

// Elements that have no equality between them count as equal, as upstream.
Value EqualLists(const ListValue& left, const ListValue& right) {
  if (left.size() != right.size()) return Value::Bool(false);
  for (uint64_t i = 0; i < left.size(); ++i) {
    StepLimit::Spend(1);
    if (Equals(left.At(i), right.At(i)).IsFalse()) return Value::Bool(false);
  }
  return Value::Bool(true);
}

Value EqualMaps(const MapValue& left, const MapValue& right) {
  if (left.size() != right.size()) return Value::Bool(false);
  for (uint64_t i = 0; i < left.size(); ++i) {
    StepLimit::Spend(1);
    const MapEntry entry = left.At(i);
    const auto found = right.Find(entry.key);
    if (!found || Equals(entry.value, *found).IsFalse()) return Value::Bool(false);
  }
  return Value::Bool(true);
}

Value EqualObjects(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return NoSuchOverload();
  switch (left.kind()) {
    case Kind::kQuantity:
      if (right.computed()) return NoSuchOverload();
      return Value::Bool(left.quantity().Compare(right.quantity()) == 0);
    case Kind::kSemver:
      return Value::Bool(left.semver().Compare(right.semver()) == 0);
    case Kind::kIp:
      return Value::Bool(left.ip() == right.ip());
    case Kind::kCidr:
      return Value::Bool(left.cidr() == right.cidr());
    case Kind::kUrl:
      return Value::Bool(left.url().text == right.url().text);
    default:
      return Value::Bool(left.object() == right.object());
  }
}

}  // namespace

thread_local uint64_t StepLimit::steps_ = 0;

void StepLimit::Spend(uint64_t steps) {
  steps_ += steps;
  if (steps_ > kMaxSteps)
    throw Cancelled(Cancelled::Cause::kLimit,
                    "operation cancelled: actual cost limit exceeded by too many steps");
}

Value Equals(const Value& left, const Value& right) {
  const Kind kind = left.kind();
  if (kind == Kind::kError) return left;
  if (kind == Kind::kNull || right.is(Kind::kNull)) return Value::Bool(kind == right.kind());
  if (IsNumber(kind)) {
    if (!IsNumber(right.kind()) || IsNan(left) || IsNan(right)) return Value::Bool(false);
    return Value::Bool(CompareNumbers(left, right) == 0);
  }
  switch (kind) {
    case Kind::kBool:
    case Kind::kDuration:
      return Value::Bool(kind == right.kind() && left.integer() == right.integer());
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kType:
      return Value::Bool(kind == right.kind() && left.text() == right.text());
    case Kind::kTimestamp:
      return Value::Bool(right.is(kind) && left.timestamp().SameInstant(right.timestamp()));
    case Kind::kList:
      return right.is(kind) ? EqualLists(left.list(), right.list()) : Value::Bool(false);
    case Kind::kMap:
      return right.is(kind) ? EqualMaps(left.map(), right.map()) : Value::Bool(false);
    case Kind::kOptional: {
      if (!right.is(kind)) return Value::Bool(false);
      const Value* const a = left.optional();
      const Value* const b = right.optional();
      if (a == nullptr || b == nullptr) return Value::Bool(a == b);
      return a->is(Kind::kNull) ? Value::Bool(b->is(Kind::kNull)) : Equals(*a, *b);
    }
    default:
      return EqualObjects(left, right);
  }
}

bool Comparable(const Value& value) {
  switch (value.kind()) {
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kDouble:
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kDuration:
    case Kind::kTimestamp:
      return true;
    default:
      return false;
  }
}

Value Compare(const Value& left, const Value& right) {
  const Kind kind = left.kind();
  if (IsNumber(kind) && IsNumber(right.kind())) {
    if (IsNan(left) || IsNan(right)) return Value::Error("NaN values cannot be ordered");
    return Value::Int(CompareNumbers(left, right));
  }
  if (IsNan(left)) return Value::Error("NaN values cannot be ordered");
  if (right.IsError()) return right;
  if (kind != right.kind()) return NoSuchOverload();
  switch (kind) {
    case Kind::kBool:
    case Kind::kDuration:
      return Value::Int(Sign(left.integer() < right.integer(), left.integer() > right.integer()));
    case Kind::kString:
    case Kind::kBytes: {
      const int order = left.text().compare(right.text());
      return Value::Int(Sign(order < 0, order > 0));
    }
    case Kind::kTimestamp:
      return Value::Int(left.timestamp().Compare(right.timestamp()));
    default:
      return NoSuchOverload();
  }
}

bool SameKey(const Value& left, const Value& right) {
  if (left.kind() != right.kind()) return false;
  switch (left.kind()) {
    case Kind::kNull:
      return true;
    case Kind::kDouble:
      return left.number() == right.number();
    case Kind::kString:
    case Kind::kType:
      return left.text() == right.text();
    case Kind::kIp:
      return left.ip() == right.ip();
    case Kind::kCidr:
      return left.cidr() == right.cidr();
    case Kind::kTimestamp:
      return left.timestamp().SameInstant(right.timestamp()) &&
             left.timestamp().offset == right.timestamp().offset;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kDuration:
      return left.integer() == right.integer();
    default:
      return left.object() == right.object();
  }
}

uint64_t HashKey(const Value& key) {
  switch (key.kind()) {
    case Kind::kString:
    case Kind::kType:
      return std::hash<std::string_view>{}(key.text());
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kDuration:
      return std::hash<uint64_t>{}(static_cast<uint64_t>(key.integer()) * 0x9e3779b97f4a7c15);
    case Kind::kDouble:
      return std::hash<double>{}(key.number());
    default:
      return 0;
  }
}

void CheckHashable(const Value& key) {
  if (key.is(Kind::kBytes) || key.is(Kind::kSemver) || key.is(Kind::kFormat)) {
    throw Cancelled(Cancelled::Cause::kInternal,
                    "internal error: " + std::string(TypeName(key)) + " cannot be a key of a map");
  }
}

bool HasSize(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kList:
    case Kind::kMap:
      return true;
    default:
      return false;
  }
}

uint64_t SizeOf(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
      return CountRunes(value.text());
    case Kind::kBytes:
      return value.text().size();
    case Kind::kList:
      return value.list().size();
    case Kind::kMap:
      return value.map().size();
    case Kind::kIp:
      return value.ip().v6 ? 16 : 4;
    case Kind::kCidr:
      return (static_cast<uint64_t>(value.cidr().bits) + 7) / 8;
    default:
      return 1;
  }
}

}  // namespace nos::cel
