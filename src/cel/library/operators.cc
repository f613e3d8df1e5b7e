// The operators of the language.
#include <fmt/format.h>

#include <limits>

#include "cel/library/function.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/map.h"
#include "cel/values/step_limit.h"
#include "cel/values/timestamp.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

constexpr Value IntOverflow() { return Value::Error("integer overflow"); }
constexpr Value UintOverflow() { return Value::Error("unsigned integer overflow"); }

// A time moved by nanoseconds.
Value Shift(Arena& arena, const Timestamp& time, int64_t nanos) {
  int64_t seconds = time.seconds + nanos / kNanosPerSecond;
  int64_t rest = time.nanos + nanos % kNanosPerSecond;
  if (rest < 0) {
    rest += kNanosPerSecond;
    --seconds;
  } else if (rest >= kNanosPerSecond) {
    rest -= kNanosPerSecond;
    ++seconds;
  }
  if (seconds < kMinUnixTime || seconds > kMaxUnixTime) return Value::Error("timestamp overflow");
  return Value::Of(arena.New<Timestamp>(seconds, static_cast<int32_t>(rest), time.offset));
}

Value Difference(const Timestamp& a, const Timestamp& b) {
  int64_t nanos = 0;
  if (__builtin_mul_overflow(a.seconds - b.seconds, kNanosPerSecond, &nanos) ||
      __builtin_add_overflow(nanos, int64_t{a.nanos} - b.nanos, &nanos)) {
    return IntOverflow();
  }
  return Value::Duration(nanos);
}

Value Concatenate(Arena& arena, const Value& a, const Value& b) {
  const size_t size = a.text().size() + b.text().size();
  char* const copy = static_cast<char*>(arena.Allocate(size));
  std::copy(a.text().begin(), a.text().end(), copy);
  std::copy(b.text().begin(), b.text().end(), copy + a.text().size());
  const std::string_view text(copy, size);
  return a.is(Kind::kString) ? Value::String(text) : Value::Bytes(text);
}

Value Add(Arena& arena, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.is(Kind::kDuration) && b.is(Kind::kTimestamp)) {
    return Shift(arena, b.timestamp(), a.integer());
  }
  if (a.is(Kind::kTimestamp) && b.is(Kind::kDuration)) {
    return Shift(arena, a.timestamp(), b.integer());
  }
  if (a.kind() != b.kind()) return NoSuchOverload();
  int64_t sum = 0;
  uint64_t natural = 0;
  switch (a.kind()) {
    case Kind::kInt:
      return __builtin_add_overflow(a.integer(), b.integer(), &sum) ? IntOverflow()
                                                                    : Value::Int(sum);
    case Kind::kUint:
      return __builtin_add_overflow(a.natural(), b.natural(), &natural) ? UintOverflow()
                                                                        : Value::Uint(natural);
    case Kind::kDouble:
      return Value::Double(a.number() + b.number());
    case Kind::kDuration:
      return __builtin_add_overflow(a.integer(), b.integer(), &sum) ? IntOverflow()
                                                                    : Value::Duration(sum);
    case Kind::kString:
    case Kind::kBytes:
      return Concatenate(arena, a, b);
    case Kind::kList:
      return Value::Of(ListValue::Add(arena, a.list(), b.list()));
    default:
      return NoSuchOverload();
  }
}

Value Subtract(Arena& arena, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.is(Kind::kTimestamp) && b.is(Kind::kDuration)) {
    if (b.integer() == std::numeric_limits<int64_t>::min()) return IntOverflow();
    return Shift(arena, a.timestamp(), -b.integer());
  }
  if (a.kind() != b.kind()) return NoSuchOverload();
  int64_t difference = 0;
  uint64_t natural = 0;
  switch (a.kind()) {
    case Kind::kInt:
      return __builtin_sub_overflow(a.integer(), b.integer(), &difference) ? IntOverflow()
                                                                           : Value::Int(difference);
    case Kind::kUint:
      return __builtin_sub_overflow(a.natural(), b.natural(), &natural) ? UintOverflow()
                                                                        : Value::Uint(natural);
    case Kind::kDouble:
      return Value::Double(a.number() - b.number());
    case Kind::kDuration:
      return __builtin_sub_overflow(a.integer(), b.integer(), &difference)
                 ? IntOverflow()
                 : Value::Duration(difference);
    case Kind::kTimestamp:
      return Difference(a.timestamp(), b.timestamp());
    default:
      return NoSuchOverload();
  }
}

Value Multiply(Arena&, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind() != b.kind()) return NoSuchOverload();
  int64_t product = 0;
  uint64_t natural = 0;
  switch (a.kind()) {
    case Kind::kInt:
      return __builtin_mul_overflow(a.integer(), b.integer(), &product) ? IntOverflow()
                                                                        : Value::Int(product);
    case Kind::kUint:
      return __builtin_mul_overflow(a.natural(), b.natural(), &natural) ? UintOverflow()
                                                                        : Value::Uint(natural);
    case Kind::kDouble:
      return Value::Double(a.number() * b.number());
    default:
      return NoSuchOverload();
  }
}

template <bool kModulo>
Value Divide(Arena&, Args args) {
  const Value& a = args[0];
  const Value& b = args[1];
  if (a.kind() != b.kind()) return NoSuchOverload();
  if (a.is(Kind::kDouble) && !kModulo) return Value::Double(a.number() / b.number());
  if (!a.is(Kind::kInt) && !a.is(Kind::kUint)) return NoSuchOverload();
  if (b.integer() == 0) return Value::Error(kModulo ? "modulus by zero" : "division by zero");
  if (a.is(Kind::kUint)) {
    return Value::Uint(kModulo ? a.natural() % b.natural() : a.natural() / b.natural());
  }
  if (a.integer() == std::numeric_limits<int64_t>::min() && b.integer() == -1) return IntOverflow();
  return Value::Int(kModulo ? a.integer() % b.integer() : a.integer() / b.integer());
}

Value Negate(Arena&, Args args) {
  const Value& value = args[0];
  switch (value.kind()) {
    case Kind::kDouble:
      return Value::Double(-value.number());
    case Kind::kInt:
    case Kind::kDuration:
      if (value.integer() == std::numeric_limits<int64_t>::min()) return IntOverflow();
      return value.is(Kind::kInt) ? Value::Int(-value.integer())
                                  : Value::Duration(-value.integer());
    default:
      return NoSuchOverload();
  }
}

Value Not(Arena&, Args args) {
  return args[0].is(Kind::kBool) ? Value::Bool(!args[0].boolean()) : NoSuchOverload();
}

// The comparison holds for these results of Compare().
template <bool kLess, bool kEqual, bool kGreater>
Value Order(Arena&, Args args) {
  const Value order = Compare(args[0], args[1]);
  if (order.IsError()) return order;
  return Value::Bool(order.integer() < 0 ? kLess : order.integer() == 0 ? kEqual : kGreater);
}

Value In(Arena&, Args args) {
  if (args[1].is(Kind::kMap)) return Value::Bool(args[1].map().Contains(args[0]));
  if (!args[1].is(Kind::kList)) return NoSuchOverload();
  const ListValue& list = args[1].list();
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    if (Equals(args[0], list.At(i)).IsTrue()) return Value::Bool(true);
  }
  return Value::Bool(false);
}

Value Size(Arena&, Args args) {
  if (!HasSize(args[0])) return NoSuchOverload();
  return Value::Int(static_cast<int64_t>(SizeOf(args[0])));
}

// The accumulator of a comprehension or a map literal, with one entry more.
Value Insert(Arena& arena, const Value& target, const Value& key, const Value& value) {
  const MapValue& map = target.map();
  if (map.Find(key)) return Value::Error("insert failed: the key already exists");
  if (map.growing()) {
    // Only comprehensions make growing maps, and their callers expect that the variable changes.
    auto& table = const_cast<TableMap&>(static_cast<const TableMap&>(map));
    table.Put(arena, key, value);
    return target;
  }
  TableMap* const copy = TableMap::New(arena, map.size() + 1, false);
  copy->Put(arena, key, value);
  for (uint64_t i = 0; i < map.size(); ++i) {
    StepLimit::Spend(1);
    const MapEntry entry = map.At(i);
    copy->Put(arena, entry.key, entry.value);
  }
  return Value::Of(copy);
}

Value InsertEntry(Arena& arena, Args args) { return Insert(arena, args[0], args[1], args[2]); }

Value InsertMap(Arena& arena, Args args) {
  Value target = args[0];
  const MapValue& added = args[1].map();
  for (uint64_t i = 0; i < added.size(); ++i) {
    const MapEntry entry = added.At(i);
    target = Insert(arena, target, entry.key, entry.value);
    if (target.IsError()) return target;
  }
  return target;
}

void DeclareArithmetic(Declarer& declare) {
  using namespace types;
  const Type* const list = declare.types().List(declare.Param("A"));
  declare.Global("_+_", "add_bytes", {&kBytes, &kBytes}, &kBytes);
  declare.Global("_+_", "add_double", {&kDouble, &kDouble}, &kDouble);
  declare.Global("_+_", "add_duration_duration", {&kDuration, &kDuration}, &kDuration);
  declare.Global("_+_", "add_duration_timestamp", {&kDuration, &kTimestamp}, &kTimestamp);
  declare.Global("_+_", "add_timestamp_duration", {&kTimestamp, &kDuration}, &kTimestamp);
  declare.Global("_+_", "add_int64", {&kInt, &kInt}, &kInt);
  declare.Global("_+_", "add_list", {list, list}, list);
  declare.Global("_+_", "add_string", {&kString, &kString}, &kString);
  declare.Global("_+_", "add_uint64", {&kUint, &kUint}, &kUint);
  declare.Singleton("_+_", Add, Binding::kBinary);
  declare.Global("_/_", "divide_double", {&kDouble, &kDouble}, &kDouble);
  declare.Global("_/_", "divide_int64", {&kInt, &kInt}, &kInt);
  declare.Global("_/_", "divide_uint64", {&kUint, &kUint}, &kUint);
  declare.Singleton("_/_", Divide<false>, Binding::kBinary);
  declare.Global("_%_", "modulo_int64", {&kInt, &kInt}, &kInt);
  declare.Global("_%_", "modulo_uint64", {&kUint, &kUint}, &kUint);
  declare.Singleton("_%_", Divide<true>, Binding::kBinary);
  declare.Global("_*_", "multiply_double", {&kDouble, &kDouble}, &kDouble);
  declare.Global("_*_", "multiply_int64", {&kInt, &kInt}, &kInt);
  declare.Global("_*_", "multiply_uint64", {&kUint, &kUint}, &kUint);
  declare.Singleton("_*_", Multiply, Binding::kBinary);
  declare.Global("-_", "negate_double", {&kDouble}, &kDouble);
  declare.Global("-_", "negate_int64", {&kInt}, &kInt);
  declare.Singleton("-_", Negate, Binding::kUnary);
  declare.Global("_-_", "subtract_double", {&kDouble, &kDouble}, &kDouble);
  declare.Global("_-_", "subtract_duration_duration", {&kDuration, &kDuration}, &kDuration);
  declare.Global("_-_", "subtract_int64", {&kInt, &kInt}, &kInt);
  declare.Global("_-_", "subtract_timestamp_duration", {&kTimestamp, &kDuration}, &kTimestamp);
  declare.Global("_-_", "subtract_timestamp_timestamp", {&kTimestamp, &kTimestamp}, &kDuration);
  declare.Global("_-_", "subtract_uint64", {&kUint, &kUint}, &kUint);
  declare.Singleton("_-_", Subtract, Binding::kBinary);
}

void DeclareOrder(Declarer& declare, std::string_view name, std::string_view prefix,
                  Implementation run) {
  using namespace types;
  struct Pair {
    std::string_view suffix;
    const Type* left;
    const Type* right;
  };
  const Pair pairs[] = {{"bool", &kBool, &kBool},
                        {"int64", &kInt, &kInt},
                        {"int64_double", &kInt, &kDouble},
                        {"int64_uint64", &kInt, &kUint},
                        {"uint64", &kUint, &kUint},
                        {"uint64_double", &kUint, &kDouble},
                        {"uint64_int64", &kUint, &kInt},
                        {"double", &kDouble, &kDouble},
                        {"double_int64", &kDouble, &kInt},
                        {"double_uint64", &kDouble, &kUint},
                        {"string", &kString, &kString},
                        {"bytes", &kBytes, &kBytes},
                        {"timestamp", &kTimestamp, &kTimestamp},
                        {"duration", &kDuration, &kDuration}};
  for (const Pair& pair : pairs) {
    declare.Global(name, fmt::format("{}_{}", prefix, pair.suffix), {pair.left, pair.right},
                   &kBool);
  }
  declare.Singleton(name, run, Binding::kBinary);
}

void DeclareContainers(Declarer& declare) {
  using namespace types;
  const Type* const a = declare.Param("A");
  const Type* const b = declare.Param("B");
  const Type* const list = declare.types().List(a);
  const Type* const map = declare.types().Map(a, b);
  declare.Global("_[_]", "index_list", {list, &kInt}, a);
  declare.Global("_[_]", "index_map", {map, a}, b);
  declare.Global("@in", "in_list", {a, list}, &kBool);
  declare.Global("@in", "in_map", {a, map}, &kBool);
  declare.Singleton("@in", In, Binding::kBinary);
  declare.Global("size", "size_bytes", {&kBytes}, &kInt);
  declare.Member("size", "bytes_size", {&kBytes}, &kInt);
  declare.Global("size", "size_list", {list}, &kInt);
  declare.Member("size", "list_size", {list}, &kInt);
  declare.Global("size", "size_map", {map}, &kInt);
  declare.Member("size", "map_size", {map}, &kInt);
  declare.Global("size", "size_string", {&kString}, &kInt);
  declare.Member("size", "string_size", {&kString}, &kInt);
  declare.Singleton("size", Size, Binding::kUnary);
  declare.Global("cel.@mapInsert", "@mapInsert_map_key_value", {map, a, b}, map, InsertEntry);
  declare.Global("cel.@mapInsert", "@mapInsert_map_map", {map, map}, map, InsertMap);
}

}  // namespace

void DeclareOperators(Declarer& declare) {
  using namespace types;
  const Type* const a = declare.Param("A");
  // Evaluated by the interpreter itself.
  declare.Global("_?_:_", "conditional", {&kBool, a, a}, a);
  declare.Global("_&&_", "logical_and", {&kBool, &kBool}, &kBool);
  declare.Global("_||_", "logical_or", {&kBool, &kBool}, &kBool);
  declare.Global("_==_", "equals", {a, a}, &kBool);
  declare.Global("_!=_", "not_equals", {a, a}, &kBool);
  declare.Global("@not_strictly_false", "not_strictly_false", {&kBool}, &kBool);

  declare.Global("!_", "logical_not", {&kBool}, &kBool);
  declare.Singleton("!_", Not, Binding::kUnary);
  DeclareArithmetic(declare);
  DeclareOrder(declare, "_<_", "less", Order<true, false, false>);
  DeclareOrder(declare, "_<=_", "less_equals", Order<true, true, false>);
  DeclareOrder(declare, "_>_", "greater", Order<false, false, true>);
  DeclareOrder(declare, "_>=_", "greater_equals", Order<false, true, true>);
  DeclareContainers(declare);
}

}  // namespace nos::cel
