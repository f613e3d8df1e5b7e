// Kubernetes' quantities: quantity("1Gi").isGreaterThan(...).
#include "cel/library/function.h"
#include "cel/values/amount.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

Value Parse(Arena& arena, Args args) {
  const Amount* const amount = Amount::Parse(arena, args[0].text());
  return amount == nullptr ? Value::Error("not a quantity") : Value::Of(amount);
}
Value IsQuantity(Arena& arena, Args args) {
  return Value::Bool(Amount::Parse(arena, args[0].text()) != nullptr);
}
Value Sign(Arena&, Args args) { return Value::Int(args[0].quantity().Sign()); }
Value CompareTo(Arena&, Args args) {
  return Value::Int(args[0].quantity().Compare(args[1].quantity()));
}
Value IsGreaterThan(Arena&, Args args) {
  return Value::Bool(args[0].quantity().Compare(args[1].quantity()) > 0);
}
Value IsLessThan(Arena&, Args args) {
  return Value::Bool(args[0].quantity().Compare(args[1].quantity()) < 0);
}
Value AsApproximateFloat(Arena&, Args args) { return Value::Double(args[0].quantity().AsDouble()); }
Value AsInteger(Arena&, Args args) {
  const auto value = args[0].quantity().AsInt();
  return value ? Value::Int(*value) : Value::Error("cannot convert value to integer");
}
Value IsInteger(Arena&, Args args) { return Value::Bool(args[0].quantity().AsInt().has_value()); }

// The second operand is a quantity or an int.
Amount Operand(const Value& value) {
  return value.is(Kind::kInt) ? Amount::FromInt(value.integer()) : value.quantity();
}
Value Add(Arena& arena, Args args) {
  return Value::Of(Amount::Add(arena, args[0].quantity(), Operand(args[1])), /*computed=*/true);
}
Value Subtract(Arena& arena, Args args) {
  return Value::Of(Amount::Subtract(arena, args[0].quantity(), Operand(args[1])),
                   /*computed=*/true);
}

}  // namespace

void DeclareQuantities(Declarer& declare) {
  using namespace types;
  const Type* const q = &kQuantity;
  declare.Global("quantity", "string_to_quantity", {&kString}, q, Parse);
  declare.Global("isQuantity", "is_quantity_string", {&kString}, &kBool, IsQuantity);
  declare.Global("sign", "quantity_sign", {q}, &kInt, Sign);
  declare.Member("isGreaterThan", "quantity_is_greater_than", {q, q}, &kBool, IsGreaterThan);
  declare.Member("isLessThan", "quantity_is_less_than", {q, q}, &kBool, IsLessThan);
  declare.Member("compareTo", "quantity_compare_to", {q, q}, &kInt, CompareTo);
  declare.Member("asApproximateFloat", "quantity_get_float", {q}, &kDouble, AsApproximateFloat);
  declare.Member("asInteger", "quantity_get_int", {q}, &kInt, AsInteger);
  declare.Member("isInteger", "quantity_is_integer", {q}, &kBool, IsInteger);
  declare.Member("add", "quantity_add", {q, q}, q, Add);
  declare.Member("add", "quantity_add_int", {q, &kInt}, q, Add);
  declare.Member("sub", "quantity_sub", {q, q}, q, Subtract);
  declare.Member("sub", "quantity_sub_int", {q, &kInt}, q, Subtract);
}

}  // namespace nos::cel
