// Optional values.
#include "cel/library/function.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/step_limit.h"
#include "cel/values/timestamp.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

Value Of(Arena& arena, Args args) { return Value::Some(arena, args[0]); }

bool IsZero(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kUint:
    case Kind::kDuration:
      return value.integer() == 0;
    case Kind::kDouble:
      return value.number() == 0;
    case Kind::kString:
    case Kind::kBytes:
    case Kind::kList:
    case Kind::kMap:
      return SizeOf(value) == 0;
    case Kind::kTimestamp:
      return value.timestamp().seconds == kMinUnixTime && value.timestamp().nanos == 0;
    default:
      return false;
  }
}

Value OfNonZero(Arena& arena, Args args) {
  return IsZero(args[0]) ? Value::None() : Value::Some(arena, args[0]);
}

Value NoneValue(Arena&, Args) { return Value::None(); }

Value Unwrap(Arena&, Args args) {
  const Value* const value = args[0].optional();
  return value == nullptr ? Value::Error("optional.none() dereference") : *value;
}

Value HasValue(Arena&, Args args) { return Value::Bool(args[0].optional() != nullptr); }

template <bool kLast>
Value End(Arena& arena, Args args) {
  const ListValue& list = args[0].list();
  if (list.size() == 0) return Value::None();
  return Value::Some(arena, list.At(kLast ? list.size() - 1 : 0));
}

Value UnwrapAll(Arena& arena, Args args) {
  const ListValue& list = args[0].list();
  const std::span<Value> values = arena.NewArray<Value>(list.size());
  size_t count = 0;
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    const Value element = list.At(i);
    if (!element.is(Kind::kOptional)) return Value::Error("the value is not optional");
    if (element.optional() != nullptr) values[count++] = *element.optional();
  }
  return Value::Of(ListValue::Of(arena, values.first(count)));
}

}  // namespace

void DeclareOptionals(Declarer& declare) {
  using namespace types;
  TypeStore& types = declare.types();
  const Type* const k = declare.Param("K");
  const Type* const v = declare.Param("V");
  const Type* const optional = types.Optional(v);
  const Type* const list = types.List(v);
  const Type* const map = types.Map(k, v);
  const Type* const optionals = types.List(optional);
  const Type* const optional_list = types.Optional(list);
  const Type* const optional_map = types.Optional(map);
  declare.Global("optional.of", "optional_of", {v}, optional, Of);
  declare.Global("optional.ofNonZeroValue", "optional_ofNonZeroValue", {v}, optional, OfNonZero);
  declare.Global("optional.none", "optional_none", {}, optional, NoneValue);
  declare.Member("value", "optional_value", {optional}, v, Unwrap);
  declare.Member("hasValue", "optional_hasValue", {optional}, &kBool, HasValue);
  // Evaluated by the interpreter itself.
  declare.Member("or", "optional_or_optional", {optional, optional}, optional);
  declare.Member("orValue", "optional_orValue_value", {optional, v}, v);
  declare.Global("_?._", "select_optional_field", {&kDyn, &kString}, optional);
  declare.Global("_[?_]", "list_optindex_optional_int", {list, &kInt}, optional);
  declare.Global("_[?_]", "optional_list_optindex_optional_int", {optional_list, &kInt}, optional);
  declare.Global("_[?_]", "map_optindex_optional_value", {map, k}, optional);
  declare.Global("_[?_]", "optional_map_optindex_optional_value", {optional_map, k}, optional);
  declare.Global("_[_]", "optional_list_index_int", {optional_list, &kInt}, optional);
  declare.Global("_[_]", "optional_map_index_value", {optional_map, k}, optional);
  declare.Member("last", "list_last", {list}, optional, End<true>);
  declare.Member("first", "list_first", {list}, optional, End<false>);
  declare.Global("optional.unwrap", "optional_unwrap", {optionals}, list, UnwrapAll);
  declare.Member("unwrapOpt", "optional_unwrapOpt", {optionals}, list, UnwrapAll);
}

}  // namespace nos::cel
