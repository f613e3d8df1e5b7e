// Lists (cel-go's extension library, version 3): slice, flatten, sort, range, reverse, distinct.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "cel/library/function.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

constexpr int64_t kMaxRange = 1'000'000;

Value Store(Arena& arena, const std::vector<Value>& values) {
  const std::span<Value> stored = arena.NewArray<Value>(values.size());
  std::copy(values.begin(), values.end(), stored.begin());
  return Value::Of(ListValue::Of(arena, stored));
}

Value Slice(Arena& arena, Args args) {
  const ListValue& list = args[0].list();
  const int64_t start = args[1].integer();
  const int64_t end = args[2].integer();
  if (start < 0 || end < start || list.size() < static_cast<uint64_t>(end)) {
    return Value::Error("cannot slice: the indexes are out of range");
  }
  StepLimit::Spend(static_cast<uint64_t>(end - start));
  const std::span<Value> values = arena.NewArray<Value>(static_cast<size_t>(end - start));
  for (size_t i = 0; i < values.size(); ++i) values[i] = list.At(static_cast<uint64_t>(start) + i);
  return Value::Of(ListValue::Of(arena, values));
}

void AppendFlat(const ListValue& list, int64_t depth, std::vector<Value>& out) {
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    const Value element = list.At(i);
    if (element.is(Kind::kList) && depth > 0) {
      AppendFlat(element.list(), depth - 1, out);
    } else {
      out.push_back(element);
    }
  }
}

Value Flatten(Arena& arena, Args args) {
  if (!args[0].is(Kind::kList)) return NoSuchOverload();
  if (args.size() == 2 && !args[1].is(Kind::kInt)) return NoSuchOverload();
  const int64_t depth = args.size() == 2 ? args[1].integer() : 1;
  if (depth < 0) return Value::Error("level must be non-negative");
  std::vector<Value> values;
  AppendFlat(args[0].list(), depth, values);
  return Store(arena, values);
}

Value SortByKeys(Arena& arena, Args args) {
  if (!args[0].is(Kind::kList) || !args.back().is(Kind::kList)) return NoSuchOverload();
  const ListValue& list = args[0].list();
  const ListValue& keys = args.back().list();
  if (list.size() != keys.size()) return Value::Error("the lists have different sizes");
  if (list.size() == 0) return args[0];
  const Value first = keys.At(0);
  if (!Comparable(first)) return Value::Error("list elements must be comparable");
  StepLimit::Spend(list.size());
  std::vector<Value> sorted_keys(list.size());
  for (uint64_t i = 0; i < list.size(); ++i) {
    sorted_keys[i] = keys.At(i);
    if (sorted_keys[i].kind() != first.kind()) {
      return Value::Error("list elements must have the same type");
    }
  }
  std::vector<uint64_t> order(list.size());
  std::iota(order.begin(), order.end(), 0);
  // NaN has no order: stable_sort keeps it in place like an equal element.
  std::stable_sort(order.begin(), order.end(), [&](uint64_t a, uint64_t b) {
    StepLimit::Spend(1);
    const Value result = Compare(sorted_keys[a], sorted_keys[b]);
    return result.is(Kind::kInt) && result.integer() < 0;
  });
  std::vector<Value> values;
  values.reserve(order.size());
  for (const uint64_t index : order) values.push_back(list.At(index));
  return Store(arena, values);
}

Value Range(Arena& arena, Args args) {
  const int64_t size = args[0].integer();
  if (size < 0 || size > kMaxRange) return Value::Error("lists.range: the size is out of range");
  StepLimit::Spend(static_cast<uint64_t>(size) / 8);
  const std::span<Value> values = arena.NewArray<Value>(static_cast<size_t>(size));
  for (int64_t i = 0; i < size; ++i) values[static_cast<size_t>(i)] = Value::Int(i);
  return Value::Of(ListValue::Of(arena, values));
}

Value Reverse(Arena& arena, Args args) {
  const ListValue& list = args[0].list();
  StepLimit::Spend(list.size());
  const std::span<Value> values = arena.NewArray<Value>(list.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = list.At(list.size() - 1 - i);
  return Value::Of(ListValue::Of(arena, values));
}

Value Distinct(Arena& arena, Args args) {
  const ListValue& list = args[0].list();
  if (list.size() == 0) return args[0];
  std::vector<Value> unique;
  for (uint64_t i = 0; i < list.size(); ++i) {
    const Value element = list.At(i);
    bool seen = false;
    for (size_t j = 0; j < unique.size() && !seen; ++j) {
      StepLimit::Spend(1);
      seen = i != j && Equals(element, unique[j]).IsTrue();
    }
    if (!seen) unique.push_back(element);
  }
  return Store(arena, unique);
}

}  // namespace

void DeclareLists(Declarer& declare) {
  using namespace types;
  TypeStore& types = declare.types();
  const Type* const list = types.List(declare.Param("T"));
  const Type* const any = types.List(&kDyn);
  declare.Member("slice", "list_slice", {list, &kInt, &kInt}, list, Slice);
  declare.Member("flatten", "list_flatten", {types.List(list)}, list, Flatten);
  declare.Member("flatten", "list_flatten_int", {any, &kInt}, any, Flatten);
  declare.WithoutGuards("flatten");
  const Type* const comparable[] = {&kInt,      &kUint,      &kDouble, &kBool,
                                    &kDuration, &kTimestamp, &kString, &kBytes};
  for (const Type* key : comparable) {
    const Type* const keys = types.List(key);
    declare.Member("sort", fmt::format("list_{}_sort", key->name), {keys}, keys);
    declare.Member("@sortByAssociatedKeys", fmt::format("list_{}_sortByAssociatedKeys", key->name),
                   {list, keys}, list);
  }
  declare.Singleton("sort", SortByKeys, Binding::kUnary);
  declare.Singleton("@sortByAssociatedKeys", SortByKeys, Binding::kBinary);
  declare.Global("lists.range", "lists_range", {&kInt}, types.List(&kInt), Range);
  declare.Member("reverse", "list_reverse", {list}, list, Reverse);
  declare.Member("distinct", "list_distinct", {list}, list, Distinct);
}

}  // namespace nos::cel
