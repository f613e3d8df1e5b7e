#include "sim/apiserver/schemas/canonical.h"

#include <fmt/format.h>

#include <array>

#include "base/clock.h"
#include "base/quantity.h"
#include "sim/apiserver/schemas/fields.h"

namespace nos::sim {
namespace {

using Shape = FieldRule::Shape;

// How the text was written decides how its value is written.
enum class Notation { kDecimal, kBinary, kExponent };

Notation NotationOf(std::string_view text) {
  const size_t end = text.find_first_not_of("+-.0123456789");
  const std::string_view suffix = end == std::string_view::npos ? "" : text.substr(end);
  if (suffix.size() == 2 && suffix[1] == 'i') return Notation::kBinary;
  const bool exponent = suffix.size() > 1 && (suffix[0] == 'e' || suffix[0] == 'E');
  return exponent ? Notation::kExponent : Notation::kDecimal;
}

// The whole number in the largest of the units, each `base` times the one before, that divides it.
std::string WithUnit(int64_t value, int64_t base, const std::array<std::string_view, 7>& units) {
  size_t unit = 0;
  while (value != 0 && value % base == 0 && unit + 1 < units.size()) {
    value /= base;
    ++unit;
  }
  return fmt::format("{}{}", value, units[unit]);
}

constexpr std::array<std::string_view, 7> kBinaryUnits = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
constexpr std::array<std::string_view, 7> kDecimalUnits = {"", "k", "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kExponents = {"", "e3", "e6", "e9", "e12", "e15", "e18"};

// "2006-01-02T15:04:05Z", with `digits` digits of a second.
std::string CanonicalTime(std::string_view text, bool micro) {
  const size_t size =
      micro ? sizeof("2006-01-02T15:04:05.000000Z") - 1 : sizeof("2006-01-02T15:04:05Z") - 1;
  if (text.size() == size && text.ends_with('Z')) return std::string(text);
  const auto time = ParseTime(text);
  if (!time.ok()) return std::string(text);
  const auto whole = std::chrono::floor<std::chrono::seconds>(*time);
  std::string plain = FormatTime(Time(whole));
  if (!micro) return plain;
  const auto micros = std::chrono::floor<std::chrono::microseconds>(*time - whole);
  plain.insert(plain.size() - 1, fmt::format(".{:06}", micros.count()));
  return plain;
}

void PutMessage(const Message& message, Json& value);

void PutOne(const FieldRule& rule, Json& value) {
  if (rule.message != nullptr) {
    if (value.is_object()) PutMessage(*rule.message, value);
    return;
  }
  const char type = rule.type.front();
  if (type == 'Q' && (value.is_string() || value.is_number())) {
    const std::string text = value.is_string()   ? std::string(value.get_string())
                             : value.is_double() ? fmt::to_string(value.get_double())
                                                 : WriteJson(value);
    std::string canonical = CanonicalQuantity(text);
    if (!value.is_string() || canonical != text) value = std::move(canonical);
  }
  if ((type == 'T' || type == 'U') && value.is_string()) {
    const std::string_view text = View(value.get_string());
    std::string canonical = CanonicalTime(text, type == 'U');
    if (canonical != text) value = std::move(canonical);
  }
}

void PutField(const FieldRule& rule, Json& value) {
  if (rule.shape == Shape::kOne) return PutOne(rule, value);
  if (rule.shape == Shape::kList && value.is_array()) {
    for (Json& element : value.get_array()) PutOne(rule, element);
  }
  if (rule.shape == Shape::kMap && value.is_object()) {
    for (auto& [key, entry] : value.get_object()) PutOne(rule, entry);
  }
}

Json ZeroOf(const FieldRule& rule) {
  if (rule.message != nullptr) return JsonObject();
  switch (rule.type.front()) {
    case 'i':
    case 'd':
      return 0;
    case 'b':
      return false;
    case 'Q':
      return "0";
    default:
      return "";
  }
}

bool KeepsNull(const FieldRule& rule) {
  return rule.message == nullptr && (rule.type.front() == 'R' || rule.type.front() == 'O');
}

void PutMessage(const Message& message, Json& value) {
  JsonObject& object = value.get_object();
  std::vector<std::string_view> nulls;
  for (auto& [key, member] : object) {
    const auto rule = message.by_name.find(std::string_view(key));
    if (rule == message.by_name.end()) continue;
    if (!member.is_null()) {
      PutField(*rule->second, member);
    } else if (!KeepsNull(*rule->second)) {
      nulls.push_back(rule->first);
    }
  }
  for (const std::string_view name : nulls) object.erase(name);
  for (const FieldRule* rule : message.always) {
    if (object.contains(rule->name)) continue;
    Json zero = ZeroOf(*rule);
    PutOne(*rule, zero);
    object[rule->name] = std::move(zero);
  }
}

}  // namespace

std::string CanonicalQuantity(std::string_view text) {
  const auto quantity = Quantity::Parse(text);
  if (!quantity.ok()) return std::string(text);
  const int64_t value = quantity->Value();
  const Notation notation = NotationOf(text);
  // A fraction has no binary unit, nor has a number below the first one.
  if (notation == Notation::kBinary && quantity->IsWhole() && (value >= 1024 || value <= -1024)) {
    return WithUnit(value, 1024, kBinaryUnits);
  }
  if (quantity->IsWhole()) {
    return WithUnit(value, 1000, notation == Notation::kExponent ? kExponents : kDecimalUnits);
  }
  std::string plain = quantity->ToString();
  if (notation != Notation::kExponent) return plain;
  constexpr std::array<std::pair<char, std::string_view>, 3> kSmall = {
      {{'m', "e-3"}, {'u', "e-6"}, {'n', "e-9"}}};
  for (const auto& [suffix, exponent] : kSmall) {
    if (plain.back() != suffix) continue;
    plain.pop_back();
    return plain.append(exponent);
  }
  return plain;
}

void Canonicalise(const ResourceType& type, Json& object) {
  const Message* message = MessageOf(type);
  if (message != nullptr && object.is_object()) PutMessage(*message, object);
}

}  // namespace nos::sim
