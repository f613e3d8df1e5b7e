#include "sim/apiserver/schemas/custom_schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/table.h"
#include "sim/apiserver/schemas/unknown.h"

namespace nos::sim {
namespace {

constexpr size_t kMaxPath = 500;

bool IsTrue(const Json& schema, std::string_view key) {
  const Json* value = Find(schema, key);
  return value != nullptr && *value == true;
}

// Map keys come from the client and have any length, so the path, which is only for messages, is
// bounded.
std::string Join(const std::string& path, std::string_view field) {
  if (path.size() > kMaxPath) return path;
  field = field.substr(0, kMaxPath);
  return path.empty() ? std::string(field) : fmt::format("{}.{}", path, field);
}

bool IsAlwaysKnown(std::string_view field) {
  return field == "apiVersion" || field == "kind" || field == "metadata";
}

// Removes unknown fields. If `unknown` is set, also records them and sets no defaults; otherwise
// sets defaults.
void Tidy(const Json& schema, Json& value, const std::string& path,
          std::vector<std::string>* unknown);

void SetDefaults(const Json& properties, JsonObject& object) {
  for (const auto& [name, property] : properties.get_object()) {
    const Json* preset = Find(property, "default");
    if (preset != nullptr && !object.contains(name)) object[name] = *preset;
  }
}

void TidyObject(const Json& schema, JsonObject& object, const std::string& path,
                std::vector<std::string>* unknown) {
  const Json* properties = Find(schema, "properties");
  const Json* additional = Find(schema, "additionalProperties");
  const bool keeps = IsTrue(schema, "x-kubernetes-preserve-unknown-fields") ||
                     (additional != nullptr && *additional != false);
  const bool root = path.empty() || IsTrue(schema, "x-kubernetes-embedded-resource");
  if (unknown == nullptr && properties != nullptr && properties->is_object()) {
    SetDefaults(*properties, object);
  }
  std::vector<std::string> gone;
  for (auto& [key, member] : object) {
    const std::string_view name(key.data(), key.size());
    if (root && IsAlwaysKnown(name)) continue;
    const Json* property = properties == nullptr ? nullptr : Find(*properties, name);
    if (property != nullptr) {
      Tidy(*property, member, Join(path, name), unknown);
    } else if (additional != nullptr && additional->is_object()) {
      Tidy(*additional, member, Join(path, name), unknown);
    } else if (!keeps) {
      gone.emplace_back(name);
    }
  }
  for (const std::string& name : gone) {
    if (unknown != nullptr && unknown->size() < kMaxUnknownReported) {
      unknown->push_back(Join(path, name));
    }
    object.erase(name);
  }
}

void Tidy(const Json& schema, Json& value, const std::string& path,
          std::vector<std::string>* unknown) {
  if (value.is_object()) {
    TidyObject(schema, value.get_object(), path, unknown);
  } else if (value.is_array()) {
    const Json* items = Find(schema, "items");
    if (items == nullptr) return;
    for (size_t i = 0; i < value.get_array().size(); ++i) {
      Tidy(*items, value.get_array()[i], fmt::format("{}[{}]", path, i), unknown);
    }
  }
}

std::string_view TypeName(const Json& value) {
  switch (value.kind()) {
    case boost::json::kind::object:
      return "object";
    case boost::json::kind::array:
      return "array";
    case boost::json::kind::string:
      return "string";
    case boost::json::kind::bool_:
      return "boolean";
    case boost::json::kind::int64:
    case boost::json::kind::uint64:
      return "integer";
    case boost::json::kind::double_:
      return "number";
    case boost::json::kind::null:
      return "null";
  }
  return "";
}

bool IsType(const Json& value, std::string_view type) {
  const std::string_view name = TypeName(value);
  return type.empty() || name == type || (type == "number" && name == "integer");
}

std::optional<double> Number(const Json* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->to_number<double>();
}

// Checks `measure` against the schema's bounds with the given names.
void CheckBounds(const Json& schema, double measure, std::string_view lowest,
                 std::string_view highest, std::string_view what, const std::string& path,
                 Causes& causes) {
  const auto low = Number(Find(schema, lowest));
  const auto high = Number(Find(schema, highest));
  if (low && (measure < *low || (measure == *low && IsTrue(schema, "exclusiveMinimum")))) {
    causes.Invalid(path, fmt::format("{}", measure), fmt::format("{} at least {}", what, *low));
  }
  if (high && (measure > *high || (measure == *high && IsTrue(schema, "exclusiveMaximum")))) {
    causes.Invalid(path, fmt::format("{}", measure), fmt::format("{} at most {}", what, *high));
  }
}

void CheckEnum(const Json& schema, const Json& value, const std::string& path, Causes& causes) {
  const Json* choices = Find(schema, "enum");
  if (choices == nullptr || !choices->is_array()) return;
  const JsonArray& list = choices->get_array();
  if (std::find(list.begin(), list.end(), value) != list.end()) return;
  const std::string shown = value.is_string() ? std::string(value.get_string()) : WriteJson(value);
  causes.Unsupported(path, shown, WriteJson(*choices));
}

void CheckObject(const Json& schema, const Patterns& patterns, const JsonObject& object,
                 const std::string& path, Causes& causes) {
  CheckBounds(schema, static_cast<double>(object.size()), "minProperties", "maxProperties",
              "number of properties must be", path, causes);
  const Json* required = Find(schema, "required");
  if (required != nullptr && required->is_array()) {
    for (const Json& name : required->get_array()) {
      if (name.is_string() && !object.contains(name.get_string())) {
        causes.Required(Join(path, View(name.get_string())));
      }
    }
  }
  const Json* properties = Find(schema, "properties");
  const Json* additional = Find(schema, "additionalProperties");
  for (const auto& [key, member] : object) {
    const std::string_view name(key.data(), key.size());
    if (path.empty() && IsAlwaysKnown(name)) continue;
    const Json* property = properties == nullptr ? nullptr : Find(*properties, name);
    if (property == nullptr && additional != nullptr && additional->is_object()) {
      property = additional;
    }
    if (property != nullptr) ValidateSchema(*property, patterns, member, Join(path, name), causes);
  }
}

// The identity of an element in a list of this type; null for lists that allow duplicates.
Json IdentityOf(const Json& schema, std::string_view list_type, const Json& element) {
  if (list_type == "set") return element;
  const Json* keys = Find(schema, "x-kubernetes-list-map-keys");
  if (list_type != "map" || keys == nullptr || !keys->is_array()) return nullptr;
  JsonObject identity;
  for (const Json& key : keys->get_array()) {
    const Json* value = key.is_string() ? Find(element, View(key.get_string())) : nullptr;
    if (value != nullptr) identity[key.get_string()] = *value;
  }
  return identity;
}

void CheckUnique(const Json& schema, const JsonArray& list, const std::string& path,
                 Causes& causes) {
  const std::string_view type = FindString(schema, "x-kubernetes-list-type");
  if (type != "set" && type != "map") return;
  std::set<std::string> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json identity = IdentityOf(schema, type, list[i]);
    if (identity.is_null()) continue;
    const std::string text = WriteJson(identity);
    if (!seen.insert(text).second)
      causes.Duplicate(fmt::format("{}[{}]", path, i), Truncated(text));
  }
}

void CheckNumber(const Json& schema, double value, const std::string& path, Causes& causes) {
  CheckBounds(schema, value, "minimum", "maximum", "must be", path, causes);
  const auto factor = Number(Find(schema, "multipleOf"));
  if (!factor || *factor <= 0) return;
  constexpr double kRounding = 1e-9;  // tolerance: 0.3 is a multiple of 0.1
  const double times = value / *factor;
  if (std::abs(times - std::round(times)) <= kRounding * std::max(1.0, std::abs(times))) return;
  causes.Invalid(path, fmt::format("{}", value),
                 fmt::format("{} in body should be a multiple of {}", path, *factor));
}

void CheckText(const Json& schema, const Patterns& patterns, std::string_view text,
               const std::string& path, Causes& causes) {
  CheckBounds(schema, static_cast<double>(DisplayWidth(text)), "minLength", "maxLength",
              "length must be", path, causes);
  const std::string_view pattern = FindString(schema, "pattern");
  if (pattern.empty() || patterns.Matches(pattern, text)) return;
  causes.Invalid(path, Truncated(text),
                 fmt::format("{} in body should match '{}'", path, Truncated(pattern)));
}

void CheckContents(const Json& schema, const Patterns& patterns, const Json& value,
                   const std::string& path, Causes& causes) {
  if (value.is_number()) {
    CheckNumber(schema, value.to_number<double>(), path, causes);
  } else if (value.is_string()) {
    CheckText(schema, patterns, View(value.get_string()), path, causes);
  } else if (value.is_array()) {
    CheckBounds(schema, static_cast<double>(value.get_array().size()), "minItems", "maxItems",
                "number of items must be", path, causes);
    CheckUnique(schema, value.get_array(), path, causes);
    const Json* items = Find(schema, "items");
    for (size_t i = 0; items != nullptr && i < value.get_array().size(); ++i) {
      ValidateSchema(*items, patterns, value.get_array()[i], fmt::format("{}[{}]", path, i),
                     causes);
    }
  } else if (value.is_object()) {
    CheckObject(schema, patterns, value.get_object(), path, causes);
  }
}

}  // namespace

void PruneAndDefault(const Json& schema, Json& object) {
  if (schema.is_object()) Tidy(schema, object, "", nullptr);
}

void Prune(const Json& schema, Json& object, std::vector<std::string>& unknown) {
  if (schema.is_object()) Tidy(schema, object, "", &unknown);
}

void ValidateSchema(const Json& schema, const Patterns& patterns, const Json& value,
                    const std::string& path, Causes& causes) {
  if (!schema.is_object()) return;
  if (value.is_null() && (path.empty() || IsTrue(schema, "nullable"))) return;
  const std::string_view type = FindString(schema, "type");
  if (IsTrue(schema, "x-kubernetes-int-or-string")) {
    if (!value.is_string() && !IsType(value, "integer")) {
      return causes.Invalid(path, TypeName(value), "must be of type integer or string");
    }
  } else if (!IsType(value, type)) {
    return causes.Invalid(path, TypeName(value),
                          fmt::format("{} in body must be of type {}", path, type));
  }
  CheckEnum(schema, value, path, causes);
  CheckContents(schema, patterns, value, path, causes);
}

}  // namespace nos::sim
