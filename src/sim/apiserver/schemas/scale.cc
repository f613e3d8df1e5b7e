#include "sim/apiserver/schemas/scale.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "sim/apiserver/schemas/shape.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {
namespace {

constexpr char kVersion[] = "autoscaling/v1";

std::vector<std::string_view> StepsOf(const ResourceType& type, std::string_view which) {
  const std::string_view path = FindString(type.scale, which);
  return path.empty() ? std::vector<std::string_view>() : Split(path.substr(1), '.');
}

const Json* At(const Json& object, const std::vector<std::string_view>& steps) {
  if (steps.empty()) return nullptr;
  const Json* value = &object;
  for (const std::string_view step : steps) {
    value = value == nullptr ? nullptr : Find(*value, step);
  }
  return value;
}

int64_t NumberOr0(const Json* value) {
  return value != nullptr && value->is_int64() ? value->get_int64() : 0;
}

std::string Text(const Json& value) {
  return value.is_string() ? std::string(value.get_string()) : std::string();
}

void AddLabels(const Json& labels, std::vector<std::string>& terms) {
  for (const auto& [key, value] : labels.get_object()) {
    if (value.is_string())
      terms.push_back(fmt::format("{}={}", std::string_view(key), Text(value)));
  }
}

std::string ExpressionText(const Json& expression) {
  const std::string key(FindString(expression, "key"));
  const std::string_view op = FindString(expression, "operator");
  if (op == "Exists") return key;
  if (op == "DoesNotExist") return "!" + key;
  std::vector<std::string> values;
  if (const Json* list = Find(expression, "values"); list != nullptr && list->is_array()) {
    for (const Json& value : list->get_array()) values.push_back(Text(value));
  }
  std::sort(values.begin(), values.end());
  return fmt::format("{} {} ({})", key, ToLower(op), Join(values, ","));
}

// A metav1.LabelSelector, or the plain labels of a ReplicationController, in the syntax of -l.
std::string SelectorText(const Json& selector) {
  std::vector<std::string> terms;
  const Json* labels = Find(selector, "matchLabels");
  const Json* expressions = Find(selector, "matchExpressions");
  if (labels != nullptr && labels->is_object()) AddLabels(*labels, terms);
  if (expressions != nullptr && expressions->is_array()) {
    for (const Json& expression : expressions->get_array()) {
      terms.push_back(ExpressionText(expression));
    }
  }
  if (labels == nullptr && expressions == nullptr) AddLabels(selector, terms);
  std::sort(terms.begin(), terms.end());
  return Join(terms, ",");
}

}  // namespace

bool IsScalePath(std::string_view path, std::string_view root) {
  if (!path.starts_with(root) || path.size() <= root.size() + 1 || path[root.size()] != '.') {
    return false;
  }
  const auto steps = Split(path.substr(1), '.');
  return std::none_of(steps.begin(), steps.end(), [](std::string_view step) {
    return step.empty() || step.find_first_of("[]'\"") != std::string_view::npos;
  });
}

Outcome<Json> ScaleOf(const ResourceType& type, const Json& object) {
  const Json* wanted = At(object, StepsOf(type, "specReplicasPath"));
  if (wanted == nullptr || !wanted->is_int64()) {
    return MakeRefusal(
        500, "InternalError",
        fmt::format("Internal error occurred: the spec replicas field \"{}\" does not exist",
                    FindString(type.scale, "specReplicasPath")));
  }
  JsonObject metadata;
  for (const std::string_view field :
       {"name", "namespace", "uid", "resourceVersion", "creationTimestamp"}) {
    if (const Json* value = Find(object, "metadata", field)) metadata[field] = *value;
  }
  JsonObject status{{"replicas", NumberOr0(At(object, StepsOf(type, "statusReplicasPath")))}};
  const Json* selector = At(object, StepsOf(type, "labelSelectorPath"));
  if (selector != nullptr && selector->is_string()) status["selector"] = *selector;
  if (selector != nullptr && selector->is_object()) status["selector"] = SelectorText(*selector);
  return Json{{"kind", "Scale"},
              {"apiVersion", kVersion},
              {"metadata", std::move(metadata)},
              {"spec", {{"replicas", *wanted}}},
              {"status", std::move(status)}};
}

Check PutScale(const ResourceType& type, const Json& scale, Json& object) {
  if (!scale.is_object()) return BadRequest("the body must be a JSON object");
  if (auto refusal = CheckShape("Scale", scale)) return refusal;
  const std::string_view kind = FindString(scale, "kind");
  const std::string_view version = FindString(scale, "apiVersion");
  if ((!kind.empty() && kind != "Scale") || (!version.empty() && version != kVersion)) {
    return BadRequest(fmt::format("the object provided is a {} of {}, but this is a Scale of {}",
                                  kind, version, kVersion));
  }
  const int64_t replicas = NumberOr0(Find(scale, "spec", "replicas"));
  if (replicas < 0 || replicas > INT32_MAX) {
    Causes causes;
    causes.Invalid("spec.replicas", fmt::format("{}", replicas),
                   "should be a non-negative integer of 32 bits");
    return ObjectInvalid(type, FindString(object, "metadata", "name"), causes.Take());
  }
  JsonObject& metadata = MakeObject(object, "metadata");
  for (const std::string_view field : {"resourceVersion", "uid"}) {
    metadata[field] = FindString(scale, "metadata", field);
  }
  Json* at = &object;
  for (const std::string_view step : StepsOf(type, "specReplicasPath")) {
    if (!at->is_object()) at->emplace_object();
    at = &at->get_object()[step];
  }
  *at = replicas;
  return std::nullopt;
}

}  // namespace nos::sim
