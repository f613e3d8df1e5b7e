// Kubernetes' functions of lists: isSorted, sum, min, max, indexOf, lastIndexOf, includes.
#include <fmt/format.h>

#include <limits>
#include <utility>

#include "cel/library/function.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/map.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

// The type checks only the first element.
Value IsSorted(Arena&, Args args) {
  const ListValue& list = args[0].list();
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    if (!Comparable(list.At(i))) return NoSuchOverload();
    if (i == 0) continue;
    const Value order = Compare(list.At(i - 1), list.At(i));
    if (order.is(Kind::kInt) && order.integer() > 0) return Value::Bool(false);
  }
  return Value::Bool(true);
}

Value AddNumbers(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return NoSuchOverload();
  int64_t sum = 0;
  uint64_t natural = 0;
  switch (a.kind()) {
    case Kind::kDouble:
      return Value::Double(a.number() + b.number());
    case Kind::kUint:
      return __builtin_add_overflow(a.natural(), b.natural(), &natural) ? NoSuchOverload()
                                                                        : Value::Uint(natural);
    default:
      if (__builtin_add_overflow(a.integer(), b.integer(), &sum)) return NoSuchOverload();
      return a.is(Kind::kInt) ? Value::Int(sum) : Value::Duration(sum);
  }
}

template <Kind kKind>
Value Sum(Arena&, Args args) {
  Value sum = kKind == Kind::kInt      ? Value::Int(0)
              : kKind == Kind::kUint   ? Value::Uint(0)
              : kKind == Kind::kDouble ? Value::Double(0)
                                       : Value::Duration(0);
  const ListValue& list = args[0].list();
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    sum = AddNumbers(sum, list.At(i));
    if (sum.IsError()) return sum;
  }
  return sum;
}

template <bool kMax>
Value Extreme(Arena&, Args args) {
  const ListValue& list = args[0].list();
  if (list.size() == 0)
    return Value::Error(kMax ? "max called on empty list" : "min called on empty list");
  Value best;
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    const Value element = list.At(i);
    if (!Comparable(element)) return NoSuchOverload();
    if (i == 0) {
      best = element;
      continue;
    }
    const Value order = Compare(best, element);
    if (order.is(Kind::kInt) && (kMax ? order.integer() < 0 : order.integer() > 0)) best = element;
  }
  return best;
}

template <bool kLast>
Value IndexOf(Arena&, Args args) {
  const ListValue& list = args[0].list();
  for (uint64_t n = 0; n < list.size(); ++n) {
    StepLimit::Spend(1);
    const uint64_t i = kLast ? list.size() - 1 - n : n;
    if (Equals(list.At(i), args[1]).IsTrue()) return Value::Int(static_cast<int64_t>(i));
  }
  return Value::Int(-1);
}

// A list that contains the value, or a value that equals it.
Value Includes(Arena&, Args args) {
  if (!args[0].is(Kind::kList)) return Value::Bool(Equals(args[0], args[1]).IsTrue());
  const ListValue& list = args[0].list();
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    if (Equals(list.At(i), args[1]).IsTrue()) return Value::Bool(true);
  }
  return Value::Bool(false);
}

}  // namespace

void DeclareListStatistics(Declarer& declare) {
  using namespace types;
  TypeStore& types = declare.types();
  const std::pair<std::string_view, const Type*> comparable[] = {
      {"int", &kInt},       {"uint", &kUint},         {"double", &kDouble},
      {"bool", &kBool},     {"duration", &kDuration}, {"timestamp", &kTimestamp},
      {"string", &kString}, {"bytes", &kBytes}};
  for (const auto& [name, type] : comparable) {
    const Type* const list = types.List(type);
    declare.Member("isSorted", fmt::format("list_{}_is_sorted_bool", name), {list}, &kBool,
                   IsSorted);
    declare.Member("max", fmt::format("list_{0}_max_{0}", name), {list}, type, Extreme<true>);
    declare.Member("min", fmt::format("list_{0}_min_{0}", name), {list}, type, Extreme<false>);
  }
  declare.Member("sum", "list_int_sum_int", {types.List(&kInt)}, &kInt, Sum<Kind::kInt>);
  declare.Member("sum", "list_uint_sum_uint", {types.List(&kUint)}, &kUint, Sum<Kind::kUint>);
  declare.Member("sum", "list_double_sum_double", {types.List(&kDouble)}, &kDouble,
                 Sum<Kind::kDouble>);
  declare.Member("sum", "list_duration_sum_duration", {types.List(&kDuration)}, &kDuration,
                 Sum<Kind::kDuration>);
  const Type* const a = declare.Param("A");
  declare.Member("indexOf", "list_a_index_of_int", {types.List(a), a}, &kInt, IndexOf<false>);
  declare.Member("lastIndexOf", "list_a_last_index_of_int", {types.List(a), a}, &kInt,
                 IndexOf<true>);
  declare.Member("includes", "list_includes_dyn_dyn", {&kDyn, &kDyn}, &kBool, Includes);
}

}  // namespace nos::cel
