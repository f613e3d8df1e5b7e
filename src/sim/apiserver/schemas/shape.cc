#include "sim/apiserver/schemas/shape.h"

#include <fmt/core.h>

#include "base/clock.h"
#include "base/quantity.h"
#include "codec/base64.h"
#include "sim/apiserver/schemas/fields.h"

namespace nos::sim {
namespace {

using Shape = FieldRule::Shape;

struct Fault {
  std::string field;  // each caller prepends its part of the path
  std::string message;
};
using Faulty = std::optional<Fault>;

// Prepends a step to the path: "a" or "[0]" before "b" or "[0]".
Fault Under(std::string_view step, Fault fault) {
  const bool dot = !fault.field.empty() && fault.field.front() != '[';
  fault.field.insert(0, fmt::format("{}{}", step, dot ? "." : ""));
  return fault;
}

std::string_view TypeName(const Json& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  return value.is_bool() ? "bool" : "number";
}

Fault Mistyped(const Json& value, std::string_view wanted) {
  return {"", fmt::format("it must be {}, not {} {}", wanted,
                          TypeName(value).starts_with('o') || value.is_array() ? "an" : "a",
                          TypeName(value))};
}

Fault Unreadable(const Json& value, std::string_view wanted) {
  const std::string text = value.is_string() ? std::string(value.get_string()) : WriteJson(value);
  return {"", fmt::format("\"{}\" is not {}", text.substr(0, 200), wanted)};
}

bool IsInteger(const Json& value) {
  return value.is_int64() || (value.is_uint64() && value.get_uint64() <= INT64_MAX);
}

Faulty CheckQuantity(const Json& value) {
  if (!value.is_string() && !value.is_number()) return Mistyped(value, "a quantity");
  const std::string text = value.is_string() ? std::string(value.get_string()) : WriteJson(value);
  if (Quantity::Parse(text).ok()) return std::nullopt;
  return Unreadable(value, "a quantity like 500m, 2 or 16Gi");
}

// Checks for a string that `good` accepts.
Faulty CheckText(const Json& value, std::string_view wanted, bool (*good)(std::string_view)) {
  if (!value.is_string()) return Mistyped(value, "a string");
  if (good(View(value.get_string()))) return std::nullopt;
  return Unreadable(value, wanted);
}

Faulty CheckScalar(char type, const Json& value) {
  const auto expect = [&](bool met, std::string_view wanted) {
    return met ? Faulty() : Faulty(Mistyped(value, wanted));
  };
  switch (type) {
    case 's':
      return expect(value.is_string(), "a string");
    case 'i':
      if (value.is_number() && !IsInteger(value)) return Unreadable(value, "a whole number");
      return expect(IsInteger(value), "a number");
    case 'd':
      return expect(value.is_number(), "a number");
    case 'b':
      return expect(value.is_bool(), "true or false");
    case 'I':
      return expect(IsInteger(value) || value.is_string(), "a whole number or a string");
    case 'O':
      return expect(value.is_object(), "an object");
    case 'Q':
      return CheckQuantity(value);
    case 'T':
    case 'U':
      return CheckText(value, "a time like 2006-01-02T15:04:05Z",
                       [](std::string_view text) { return ParseTime(text).ok(); });
    case 'y':
      return CheckText(value, "base64",
                       [](std::string_view text) { return DecodeBase64(text).ok(); });
    default:
      return std::nullopt;  // R: any value
  }
}

Faulty CheckMessage(const Message& message, const Json& value);

Faulty CheckOne(const FieldRule& rule, const Json& value) {
  if (value.is_null()) return std::nullopt;
  return rule.message != nullptr ? CheckMessage(*rule.message, value)
                                 : CheckScalar(rule.type.front(), value);
}

Faulty CheckElements(const FieldRule& rule, const Json& value) {
  if (!value.is_array()) return Mistyped(value, "a list");
  for (size_t i = 0; i < value.get_array().size(); ++i) {
    if (Faulty fault = CheckOne(rule, value.get_array()[i])) {
      return Under(fmt::format("[{}]", i), std::move(*fault));
    }
  }
  return std::nullopt;
}

Faulty CheckEntries(const FieldRule& rule, const Json& value) {
  if (!value.is_object()) return Mistyped(value, "an object");
  for (const auto& [key, entry] : value.get_object()) {
    if (Faulty fault = CheckOne(rule, entry)) {
      return Under(fmt::format("[{}]", std::string_view(key)), std::move(*fault));
    }
  }
  return std::nullopt;
}

Faulty CheckField(const FieldRule& rule, const Json& value) {
  if (value.is_null()) return std::nullopt;
  if (rule.shape == Shape::kList) return CheckElements(rule, value);
  if (rule.shape == Shape::kMap) return CheckEntries(rule, value);
  return CheckOne(rule, value);
}

Faulty CheckMessage(const Message& message, const Json& value) {
  if (!value.is_object()) return Mistyped(value, "an object");
  for (const auto& [key, member] : value.get_object()) {
    const auto rule = message.by_name.find(std::string_view(key));
    if (rule == message.by_name.end()) continue;
    if (Faulty fault = CheckField(*rule->second, member)) return Under(key, std::move(*fault));
  }
  return std::nullopt;
}

// Fields of every object in addition to those of its message.
Faulty CheckTypeMeta(const Json& object) {
  for (const std::string_view field : {"apiVersion", "kind"}) {
    const Json* value = Find(object, field);
    if (value == nullptr || value->is_null() || value->is_string()) continue;
    return Under(field, Mistyped(*value, "a string"));
  }
  return std::nullopt;
}

Check ToRefusal(std::string_view kind, std::string_view version, const Faulty& fault) {
  if (!fault) return std::nullopt;
  Refusal refusal = BadRequest(fmt::format("{} in version \"{}\" cannot be handled as a {}: {}: {}",
                                           kind, version, kind, fault->field, fault->message));
  refusal.causes.push_back({"FieldValueInvalid", fault->field, fault->message});
  return refusal;
}

}  // namespace

Check CheckShape(const ResourceType& type, const Json& object) {
  Faulty fault = CheckTypeMeta(object);
  const Message* message = MessageOf(type);
  const Json* metadata = Find(object, "metadata");
  if (!fault && message != nullptr) fault = CheckMessage(*message, object);
  if (!fault && message == nullptr && metadata != nullptr && !metadata->is_null()) {
    fault = CheckMessage(*FindMessage("ObjectMeta"), *metadata);
    if (fault) fault = Under("metadata", std::move(*fault));
  }
  return ToRefusal(type.kind, type.version, fault);
}

Check CheckShape(std::string_view message, const Json& object) {
  Faulty fault = CheckTypeMeta(object);
  if (!fault) fault = CheckMessage(*FindMessage(message), object);
  return ToRefusal(message, "v1", fault);
}

}  // namespace nos::sim
