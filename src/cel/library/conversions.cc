// Conversions between types: int("1"), string(1), type(x).
#include <charconv>
#include <cmath>

#include "cel/library/function.h"
#include "cel/syntax/literals.h"
#include "cel/values/network.h"
#include "cel/values/number_text.h"
#include "cel/values/numbers.h"
#include "cel/values/runes.h"
#include "cel/values/timestamp.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

constexpr Value ConversionError() { return Value::Error("type conversion error"); }

Value Identity(Arena&, Args args) { return args[0]; }

template <typename T>
std::optional<T> ParseWhole(std::string_view text) {
  if (text.starts_with('+') && std::is_signed_v<T>) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Value StringToBool(Arena&, Args args) {
  for (const std::string_view word : {"1", "t", "T", "TRUE", "true", "True"}) {
    if (args[0].text() == word) return Value::Bool(true);
  }
  for (const std::string_view word : {"0", "f", "F", "FALSE", "false", "False"}) {
    if (args[0].text() == word) return Value::Bool(false);
  }
  return ConversionError();
}

Value StringToBytes(Arena&, Args args) { return Value::Bytes(args[0].text()); }

Value IntToDouble(Arena&, Args args) {
  return Value::Double(static_cast<double>(args[0].integer()));
}
Value UintToDouble(Arena&, Args args) {
  return Value::Double(static_cast<double>(args[0].natural()));
}
Value StringToDouble(Arena&, Args args) {
  const auto value = ParseDouble(args[0].text());
  return value ? Value::Double(*value) : ConversionError();
}

Value StringToDuration(Arena&, Args args) {
  const auto nanos = ParseDuration(args[0].text());
  return nanos ? Value::Duration(*nanos) : ConversionError();
}

Value DoubleToInt(Arena&, Args args) {
  const auto value = CheckedInt(args[0].number());
  return value ? Value::Int(*value) : Value::Error("integer overflow");
}
Value DurationToInt(Arena&, Args args) { return Value::Int(args[0].integer()); }
Value TimestampToInt(Arena&, Args args) { return Value::Int(args[0].timestamp().seconds); }
Value StringToInt(Arena&, Args args) {
  const auto value = ParseWhole<int64_t>(args[0].text());
  return value ? Value::Int(*value) : ConversionError();
}
Value UintToInt(Arena&, Args args) {
  return args[0].integer() < 0 ? Value::Error("integer overflow") : Value::Int(args[0].integer());
}

Value DoubleToUint(Arena&, Args args) {
  const auto value = CheckedUint(args[0].number());
  return value ? Value::Uint(*value) : Value::Error("unsigned integer overflow");
}
Value IntToUint(Arena&, Args args) {
  return args[0].integer() < 0 ? Value::Error("unsigned integer overflow")
                               : Value::Uint(args[0].natural());
}
Value StringToUint(Arena&, Args args) {
  const auto value = ParseWhole<uint64_t>(args[0].text());
  return value ? Value::Uint(*value) : ConversionError();
}

Value BoolToString(Arena&, Args args) {
  return Value::String(args[0].boolean() ? "true" : "false");
}
Value BytesToString(Arena&, Args args) {
  if (!ValidUtf8(args[0].text())) return Value::Error("invalid UTF-8 in bytes");
  return Value::String(args[0].text());
}
Value DoubleToString(Arena& arena, Args args) {
  return StringValue(arena, FormatGeneral(args[0].number()));
}
Value DurationToString(Arena& arena, Args args) {
  const int64_t nanos = args[0].integer();
  const int64_t whole = nanos / kNanosPerSecond;
  const double seconds =
      static_cast<double>(whole) + static_cast<double>(nanos % kNanosPerSecond) / 1e9;
  return StringValue(arena, FormatPlain(seconds) + "s");
}
Value IntToString(Arena& arena, Args args) {
  return StringValue(arena, std::to_string(args[0].integer()));
}
Value UintToString(Arena& arena, Args args) {
  return StringValue(arena, std::to_string(args[0].natural()));
}
Value TimestampToString(Arena& arena, Args args) {
  return StringValue(arena, args[0].timestamp().ToString());
}

Value IntToTimestamp(Arena& arena, Args args) {
  const int64_t seconds = args[0].integer();
  if (seconds < kMinUnixTime || seconds > kMaxUnixTime) return Value::Error("timestamp overflow");
  return Value::Of(arena.New<Timestamp>(seconds));
}
Value StringToTimestamp(Arena& arena, Args args) {
  const auto time = Timestamp::Parse(args[0].text());
  if (!time) return ConversionError();
  if (time->seconds < kMinUnixTime || time->seconds > kMaxUnixTime) {
    return Value::Error("timestamp overflow");
  }
  return Value::Of(arena.New<Timestamp>(*time));
}

Value TypeOf(Arena&, Args args) { return Value::Type(TypeName(args[0])); }

}  // namespace

void DeclareConversions(Declarer& declare) {
  using namespace types;
  const Type* const a = declare.Param("A");
  declare.Global("type", "type", {a}, declare.types().TypeOf(a));
  declare.Singleton("type", TypeOf, Binding::kUnary);
  declare.Global("bool", "bool_to_bool", {&kBool}, &kBool, Identity);
  declare.Global("bool", "string_to_bool", {&kString}, &kBool, StringToBool);
  declare.Global("bytes", "bytes_to_bytes", {&kBytes}, &kBytes, Identity);
  declare.Global("bytes", "string_to_bytes", {&kString}, &kBytes, StringToBytes);
  declare.Global("double", "double_to_double", {&kDouble}, &kDouble, Identity);
  declare.Global("double", "int64_to_double", {&kInt}, &kDouble, IntToDouble);
  declare.Global("double", "string_to_double", {&kString}, &kDouble, StringToDouble);
  declare.Global("double", "uint64_to_double", {&kUint}, &kDouble, UintToDouble);
  declare.Global("duration", "duration_to_duration", {&kDuration}, &kDuration, Identity);
  declare.Global("duration", "string_to_duration", {&kString}, &kDuration, StringToDuration);
  declare.Global("dyn", "to_dyn", {a}, &kDyn);
  declare.Singleton("dyn", Identity, Binding::kUnary);
  declare.Global("int", "int64_to_int64", {&kInt}, &kInt, Identity);
  declare.Global("int", "double_to_int64", {&kDouble}, &kInt, DoubleToInt);
  declare.Global("int", "duration_to_int64", {&kDuration}, &kInt, DurationToInt);
  declare.Global("int", "string_to_int64", {&kString}, &kInt, StringToInt);
  declare.Global("int", "timestamp_to_int64", {&kTimestamp}, &kInt, TimestampToInt);
  declare.Global("int", "uint64_to_int64", {&kUint}, &kInt, UintToInt);
  declare.Global("string", "string_to_string", {&kString}, &kString, Identity);
  declare.Global("string", "bool_to_string", {&kBool}, &kString, BoolToString);
  declare.Global("string", "bytes_to_string", {&kBytes}, &kString, BytesToString);
  declare.Global("string", "double_to_string", {&kDouble}, &kString, DoubleToString);
  declare.Global("string", "duration_to_string", {&kDuration}, &kString, DurationToString);
  declare.Global("string", "int64_to_string", {&kInt}, &kString, IntToString);
  declare.Global("string", "timestamp_to_string", {&kTimestamp}, &kString, TimestampToString);
  declare.Global("string", "uint64_to_string", {&kUint}, &kString, UintToString);
  declare.Global("timestamp", "timestamp_to_timestamp", {&kTimestamp}, &kTimestamp, Identity);
  declare.Global("timestamp", "int64_to_timestamp", {&kInt}, &kTimestamp, IntToTimestamp);
  declare.Global("timestamp", "string_to_timestamp", {&kString}, &kTimestamp, StringToTimestamp);
  declare.Global("uint", "uint64_to_uint64", {&kUint}, &kUint, Identity);
  declare.Global("uint", "double_to_uint64", {&kDouble}, &kUint, DoubleToUint);
  declare.Global("uint", "int64_to_uint64", {&kInt}, &kUint, IntToUint);
  declare.Global("uint", "string_to_uint64", {&kString}, &kUint, StringToUint);
}

}  // namespace nos::cel
