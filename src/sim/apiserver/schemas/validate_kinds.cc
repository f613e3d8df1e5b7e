#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "sim/apiserver/schemas/custom_rules.h"
#include "sim/apiserver/schemas/scale.h"
#include "sim/apiserver/schemas/selectors.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {
namespace {

void ValidateNode(const Json& node, Causes& causes) {
  const Json* taints = Find(node, "spec", "taints");
  if (taints == nullptr || taints->is_null()) return;
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (size_t i = 0; i < taints->get_array().size(); ++i) {
    const Json& taint = taints->get_array()[i];
    const std::string field = fmt::format("spec.taints[{}]", i);
    const std::string_view key = FindString(taint, "key");
    const std::string_view effect = FindString(taint, "effect");
    if (!IsQualifiedName(key)) causes.Invalid(field + ".key", key, "is not a qualified name");
    if (effect != "NoSchedule" && effect != "PreferNoSchedule" && effect != "NoExecute") {
      causes.Unsupported(field + ".effect", effect,
                         "\"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"");
    } else if (!seen.insert({key, effect}).second) {
      causes.Duplicate(field, fmt::format("{}:{}", key, effect));
    }
  }
}

// Checks a map such as a ConfigMap's data.
void ValidateStringMap(const Json& object, std::string_view field, Causes& causes) {
  const Json* map = Find(object, field);
  if (map == nullptr || map->is_null()) return;
  for (const auto& [key, value] : map->get_object()) {
    const std::string path = fmt::format("{}[{}]", field, std::string(key));
    const bool good_key =
        !key.empty() && key.size() <= 253 && std::all_of(key.begin(), key.end(), [](char c) {
          return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                 c == '-' || c == '_' || c == '.';
        });
    if (!good_key) {
      causes.Invalid(path, std::string(key), "keys have letters, digits, '-', '_' or '.'");
    } else if (!value.is_string()) {
      causes.Invalid(path, "", "must be a string");
    }
  }
}

void ValidateImmutable(const Json& object, const Json* old, Causes& causes) {
  if (old == nullptr || Find(*old, "immutable") == nullptr || *Find(*old, "immutable") != true) {
    return;
  }
  for (const std::string_view field : {"data", "binaryData", "immutable", "stringData"}) {
    const Json* a = Find(object, field);
    const Json* b = Find(*old, field);
    if ((a == nullptr) != (b == nullptr) || (a != nullptr && *a != *b)) {
      causes.Forbidden(std::string(field), "field is immutable when `immutable` is set");
    }
  }
}

const Json* TemplateOf(const ResourceType& type, const Json& object) {
  const Json* at = &object;
  for (const std::string_view step : Split(type.pod_template, '.')) {
    at = at == nullptr ? nullptr : Find(*at, step);
  }
  return at;
}

bool IsEmptySelector(const Json& selector) {
  const Json* labels = Find(selector, "matchLabels");
  const Json* expressions = Find(selector, "matchExpressions");
  const bool any_label = labels != nullptr && labels->is_object() && !labels->get_object().empty();
  return !any_label &&
         (expressions == nullptr || !expressions->is_array() || expressions->get_array().empty());
}

void ValidateWorkload(const ResourceType& type, const Json& object, const Json* old,
                      Causes& causes) {
  const Json* pod = TemplateOf(type, object);
  if (pod == nullptr || !pod->is_object()) return causes.Required(type.pod_template);
  ValidatePodSpec(*pod, type.pod_template + ".spec", causes);
  if (type.group == "batch") {
    if (FindString(*pod, "spec", "restartPolicy") == "Always") {
      causes.Unsupported(type.pod_template + ".spec.restartPolicy", "Always",
                         "\"OnFailure\", \"Never\"");
    }
    return;
  }
  if (type.group != "apps") return;
  const Json* selector = Find(object, "spec", "selector");
  if (selector == nullptr || !selector->is_object()) return causes.Required("spec.selector");
  if (IsEmptySelector(*selector)) {
    return causes.Invalid("spec.selector", WriteJson(*selector),
                          "empty selector is invalid for " + ToLower(type.kind));
  }
  if (!LabelSelector::FromJson(selector).Matches(*pod)) {
    causes.Invalid("spec.template.metadata.labels", "",
                   "`selector` does not match template `labels`");
  }
  const Json* before = old == nullptr ? nullptr : Find(*old, "spec", "selector");
  if (before != nullptr && *before != *selector) {
    causes.Invalid("spec.selector", WriteJson(*selector), "field is immutable");
  }
}

void ValidatePriorityClass(const Json& object, const Json* old, Causes& causes) {
  constexpr int64_t kHighestUserPriority = 1'000'000'000;
  const Json* value = Find(object, "value");
  const std::string_view name = FindString(object, "metadata", "name");
  if (value == nullptr || !value->is_int64()) return causes.Required("value");
  if (value->get_int64() > kHighestUserPriority && !name.starts_with("system-")) {
    causes.Forbidden("value", fmt::format("maximum allowed value of a user defined priority is {}",
                                          kHighestUserPriority));
  }
  if (old != nullptr && Find(*old, "value") != nullptr && *Find(*old, "value") != *value) {
    causes.Forbidden("value", "may not be changed in an update.");
  }
}

void ValidateScale(const Json& version, const std::string& at, Causes& causes) {
  const Json* scale = Find(version, "subresources", "scale");
  if (scale == nullptr || scale->is_null()) return;
  const auto check = [&](std::string_view field, std::initializer_list<std::string_view> roots) {
    const std::string_view path = FindString(*scale, field);
    const bool good = std::any_of(roots.begin(), roots.end(),
                                  [&](std::string_view root) { return IsScalePath(path, root); });
    if (good || (path.empty() && field == "labelSelectorPath")) return;
    causes.Invalid(fmt::format("{}.subresources.scale.{}", at, field), path,
                   fmt::format("should be a json path under {}, without brackets",
                               Join({roots.begin(), roots.end()}, " or ")));
  };
  check("specReplicasPath", {".spec"});
  check("statusReplicasPath", {".status"});
  check("labelSelectorPath", {".status", ".spec"});
}

void ValidateDefinition(const Json& object, Causes& causes) {
  const std::string_view group = FindString(object, "spec", "group");
  const std::string_view plural = FindString(object, "spec", "names", "plural");
  const std::string expected = fmt::format("{}.{}", plural, group);
  // Groups of Kubernetes itself are reserved; a real server requires an approval for
  // "example.k8s.io".
  static const std::set<std::string, std::less<>> kBuiltIn = [] {
    const auto groups = TypeRegistry().Groups();
    return std::set<std::string, std::less<>>(groups.begin(), groups.end());
  }();
  if (!IsDnsSubdomain(group) || group.find('.') == std::string_view::npos ||
      kBuiltIn.contains(group)) {
    causes.Invalid("spec.group", group, "should be a domain with at least one dot, of your own");
  }
  if (!IsDnsLabel(plural)) causes.Invalid("spec.names.plural", plural, "is not a DNS label");
  if (FindString(object, "spec", "names", "kind").empty()) causes.Required("spec.names.kind");
  if (FindString(object, "metadata", "name") != expected) {
    causes.Invalid("metadata.name", FindString(object, "metadata", "name"),
                   fmt::format("must be spec.names.plural+\".\"+spec.group ({})", expected));
  }
  const std::string_view scope = FindString(object, "spec", "scope");
  if (scope != "Namespaced" && scope != "Cluster") {
    causes.Unsupported("spec.scope", scope, "\"Cluster\", \"Namespaced\"");
  }
  const Json* versions = Find(object, "spec", "versions");
  if (versions == nullptr || !versions->is_array() || versions->get_array().empty()) {
    return causes.Required("spec.versions");
  }
  int stored = 0;
  for (size_t i = 0; i < versions->get_array().size(); ++i) {
    const Json& version = versions->get_array()[i];
    const std::string field = fmt::format("spec.versions[{}]", i);
    if (!IsDnsLabel(FindString(version, "name"))) {
      causes.Invalid(field + ".name", FindString(version, "name"), "is not a DNS label");
    }
    const Json* storage = Find(version, "storage");
    if (storage != nullptr && *storage == true) ++stored;
    const Json* schema = Find(version, "schema", "openAPIV3Schema");
    if (schema == nullptr || !schema->is_object()) {
      causes.Required(field + ".schema.openAPIV3Schema", "schemas are required");
    } else {
      ValidatePatterns(*schema, field + ".schema.openAPIV3Schema", causes);
    }
    ValidateScale(version, field, causes);
  }
  if (stored != 1) {
    causes.Invalid("spec.versions", "", "must have exactly one version marked as storage version");
  }
}

}  // namespace

void ValidateKind(const ResourceType& type, const Json& object, const Json* old, Causes& causes) {
  const std::string_view kind = type.kind;
  if (!type.pod_template.empty()) ValidateWorkload(type, object, old, causes);
  if (type.group == "resource.k8s.io") return ValidateDevices(type, object, old, causes);
  if (kind == "Node") ValidateNode(object, causes);
  if (kind == "ConfigMap" || kind == "Secret") {
    ValidateStringMap(object, "data", causes);
    ValidateImmutable(object, old, causes);
  }
  if (kind == "PriorityClass") ValidatePriorityClass(object, old, causes);
  if (kind == "CustomResourceDefinition") ValidateDefinition(object, causes);
  if (kind == "Lease") {
    const Json* seconds = Find(object, "spec", "leaseDurationSeconds");
    if (seconds != nullptr && seconds->is_int64() && seconds->get_int64() <= 0) {
      causes.Invalid("spec.leaseDurationSeconds", WriteJson(*seconds), "must be greater than 0");
    }
  }
}

}  // namespace nos::sim
