#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/quantity.h"
#include "base/text.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {
namespace {

std::string Indexed(const std::string& path, size_t i) { return fmt::format("{}[{}]", path, i); }

const JsonArray& ListAt(const Json& object, std::string_view key) {
  static const JsonArray kNone;
  const Json* list = Find(object, key);
  return list == nullptr || list->is_null() ? kNone : list->get_array();
}

bool IsOvercommitable(std::string_view resource) {
  // Kubernetes' own resources may be requested in fractions and below their limit; extended
  // resources ("nvidia.com/gpu") and huge pages may not.
  return resource.find('/') == std::string_view::npos && !resource.starts_with("hugepages-");
}

std::string QuantityText(const Json& value) {
  return value.is_string() ? std::string(value.get_string()) : WriteJson(value);
}

using Amounts = std::map<std::string, Quantity>;

Amounts ValidateAmounts(const Json& container, std::string_view which, const std::string& path,
                        Causes& causes) {
  Amounts amounts;
  const Json* list = Find(container, "resources", which);
  if (list == nullptr || !list->is_object()) return amounts;
  for (const auto& [key, value] : list->get_object()) {
    const std::string name(key);
    const std::string field = fmt::format("{}.resources.{}[{}]", path, which, name);
    const std::string text = QuantityText(value);
    const auto amount = Quantity::Parse(text);
    if (!IsQualifiedName(name)) {
      causes.Invalid(field, name, "must be a standard resource type or fully qualified");
    } else if (!amount.ok()) {
      causes.Invalid(field, text, "quantities must be like 500m, 2 or 16Gi");
    } else if (*amount < Quantity()) {
      causes.Invalid(field, text, "must be greater than or equal to 0");
    } else if (!IsOvercommitable(name) && Quantity::FromValue(amount->Value()) != *amount) {
      causes.Invalid(field, text, "must be an integer");
    } else {
      amounts[name] = *amount;
    }
  }
  return amounts;
}

void ValidateResources(const Json& container, const std::string& path, Causes& causes) {
  const Amounts limits = ValidateAmounts(container, "limits", path, causes);
  const Amounts requests = ValidateAmounts(container, "requests", path, causes);
  for (const auto& [name, asked] : requests) {
    const std::string field = fmt::format("{}.resources.requests", path);
    const auto limit = limits.find(name);
    if (limit == limits.end()) {
      if (!IsOvercommitable(name)) {
        causes.Required(path + ".resources.limits",
                        "Limit must be set for non overcommitable resources");
      }
    } else if (!IsOvercommitable(name) && asked != limit->second) {
      causes.Invalid(
          field, asked.ToString(),
          fmt::format("must be equal to {} limit of {}", name, limit->second.ToString()));
    } else if (asked > limit->second) {
      causes.Invalid(field, asked.ToString(),
                     fmt::format("must be less than or equal to {} limit of {}", name,
                                 limit->second.ToString()));
    }
  }
}

void ValidatePorts(const Json& container, const std::string& path, Causes& causes) {
  const JsonArray& ports = ListAt(container, "ports");
  for (size_t i = 0; i < ports.size(); ++i) {
    const Json* port = Find(ports[i], "containerPort");
    const bool good =
        port != nullptr && port->is_int64() && port->get_int64() > 0 && port->get_int64() < 65536;
    if (!good) {
      causes.Invalid(Indexed(path + ".ports", i) + ".containerPort",
                     port == nullptr ? "0" : WriteJson(*port),
                     "must be between 1 and 65535, inclusive");
    }
  }
}

void ValidateMounts(const Json& container, const std::string& path,
                    const std::set<std::string>& volumes, Causes& causes) {
  const JsonArray& mounts = ListAt(container, "volumeMounts");
  for (size_t i = 0; i < mounts.size(); ++i) {
    const std::string field = Indexed(path + ".volumeMounts", i);
    const std::string name(FindString(mounts[i], "name"));
    if (!volumes.contains(name)) {
      causes.Invalid(field + ".name", name, "no volume of this name");
    }
    if (FindString(mounts[i], "mountPath").empty()) causes.Required(field + ".mountPath");
  }
}

void ValidateContainers(const Json& spec, std::string_view key, const std::string& path,
                        const std::set<std::string>& volumes, std::set<std::string>& names,
                        Causes& causes) {
  const std::string list_path = path + "." + std::string(key);
  const JsonArray& containers = ListAt(spec, key);
  for (size_t i = 0; i < containers.size(); ++i) {
    const Json& container = containers[i];
    const std::string field = Indexed(list_path, i);
    const std::string name(FindString(container, "name"));
    if (name.empty()) {
      causes.Required(field + ".name");
    } else if (!IsDnsLabel(name)) {
      causes.Invalid(field + ".name", name, "must be a lowercase RFC 1123 label");
    } else if (!names.insert(name).second) {
      causes.Duplicate(field + ".name", name);
    }
    if (FindString(container, "image").empty()) causes.Required(field + ".image");
    ValidateResources(container, field, causes);
    ValidatePorts(container, field, causes);
    ValidateMounts(container, field, volumes, causes);
  }
}

std::set<std::string> ValidateVolumes(const Json& spec, const std::string& path, Causes& causes) {
  std::set<std::string> names;
  const JsonArray& volumes = ListAt(spec, "volumes");
  for (size_t i = 0; i < volumes.size(); ++i) {
    const std::string field = Indexed(path + ".volumes", i) + ".name";
    const std::string name(FindString(volumes[i], "name"));
    if (!IsDnsLabel(name)) {
      causes.Invalid(field, name, "must be a lowercase RFC 1123 label");
    } else if (!names.insert(name).second) {
      causes.Duplicate(field, name);
    }
  }
  return names;
}

void ValidateTolerations(const Json& spec, const std::string& path, Causes& causes) {
  const JsonArray& tolerations = ListAt(spec, "tolerations");
  for (size_t i = 0; i < tolerations.size(); ++i) {
    const std::string field = Indexed(path + ".tolerations", i);
    const std::string_view op = FindString(tolerations[i], "operator");
    const std::string_view key = FindString(tolerations[i], "key");
    if (!op.empty() && op != "Exists" && op != "Equal") {
      causes.Unsupported(field + ".operator", op, "\"Equal\", \"Exists\"");
    }
    if (key.empty() && op != "Exists") {
      causes.Invalid(field + ".operator", op, "operator must be Exists when `key` is empty");
    }
    if (op == "Exists" && !FindString(tolerations[i], "value").empty()) {
      causes.Invalid(field + ".operator", op, "value must be empty when `operator` is 'Exists'");
    }
  }
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> choices) {
  return std::find(choices.begin(), choices.end(), text) != choices.end();
}

// The immutable part of a pod's spec.
Json FixedPart(const Json& pod) {
  const Json* spec = Find(pod, "spec");
  Json fixed = spec == nullptr ? Json(JsonObject()) : *spec;
  if (!fixed.is_object()) return fixed;
  for (const std::string_view list : {"containers", "initContainers"}) {
    Json* containers = fixed.get_object().if_contains(list);
    if (containers == nullptr || !containers->is_array()) continue;
    for (Json& container : containers->get_array()) {
      if (!container.is_object()) continue;
      container.get_object().erase("image");
      container.get_object().erase("imagePullPolicy");
    }
  }
  for (const std::string_view field :
       {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates",
        "ephemeralContainers"}) {
    fixed.get_object().erase(field);
  }
  return fixed;
}

// The claims of the pod, and that containers use only these.
void ValidateResourceClaims(const Json& spec, const std::string& path, Causes& causes) {
  std::set<std::string_view> names;
  const JsonArray& claims = ListAt(spec, "resourceClaims");
  for (size_t i = 0; i < claims.size(); ++i) {
    const std::string at = Indexed(path + ".resourceClaims", i);
    const std::string_view name = FindString(claims[i], "name");
    if (!IsDnsLabel(name)) causes.Invalid(at + ".name", name, "is not a DNS label");
    if (!names.insert(name).second) causes.Duplicate(at + ".name", name);
    const bool claim = !FindString(claims[i], "resourceClaimName").empty();
    const bool from_template = !FindString(claims[i], "resourceClaimTemplateName").empty();
    if (claim == from_template) {
      causes.Invalid(at, "",
                     "exactly one of `resourceClaimName`, `resourceClaimTemplateName` is required");
    }
  }
  for (const std::string_view list : {"containers", "initContainers"}) {
    const JsonArray& containers = ListAt(spec, list);
    for (size_t i = 0; i < containers.size(); ++i) {
      const Json* resources = Find(containers[i], "resources");
      if (resources == nullptr || !resources->is_object()) continue;
      for (const Json& used : ListAt(*resources, "claims")) {
        const std::string_view name = FindString(used, "name");
        if (names.contains(name)) continue;
        causes.Invalid(
            fmt::format("{}.resources.claims", Indexed(fmt::format("{}.{}", path, list), i)), name,
            "is not in spec.resourceClaims");
      }
    }
  }
}

}  // namespace

void ValidatePodSpec(const Json& pod, const std::string& path, Causes& causes) {
  const Json* spec = Find(pod, "spec");
  if (spec == nullptr || !spec->is_object()) return causes.Required(path);
  const std::set<std::string> volumes = ValidateVolumes(*spec, path, causes);
  const Json* containers = Find(*spec, "containers");
  if (containers == nullptr || !containers->is_array() || containers->get_array().empty()) {
    causes.Required(path + ".containers");
  }
  std::set<std::string> names;
  ValidateContainers(*spec, "containers", path, volumes, names, causes);
  ValidateContainers(*spec, "initContainers", path, volumes, names, causes);
  ValidateTolerations(*spec, path, causes);
  ValidateResourceClaims(*spec, path, causes);
  const std::string_view restart = FindString(*spec, "restartPolicy");
  if (!IsOneOf(restart, {"Always", "OnFailure", "Never"})) {
    causes.Unsupported(path + ".restartPolicy", restart, "\"Always\", \"OnFailure\", \"Never\"");
  }
  const Json* grace = Find(*spec, "terminationGracePeriodSeconds");
  if (grace != nullptr && (!grace->is_int64() || grace->get_int64() < 0)) {
    causes.Invalid(path + ".terminationGracePeriodSeconds", WriteJson(*grace),
                   "must be a whole number, 0 or more");
  }
}

void ValidatePodUpdate(const Json& pod, const Json& old, Causes& causes) {
  const Json* spec = Find(pod, "spec");
  const Json* before = Find(old, "spec");
  // fast path for most updates
  if (spec != nullptr && before != nullptr && *spec == *before) return;
  if (FixedPart(pod) == FixedPart(old)) return;
  causes.Forbidden("spec",
                   "pod updates may not change fields other than `spec.containers[*].image`,"
                   "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
                   "`spec.tolerations` (only additions to existing tolerations),"
                   "`spec.terminationGracePeriodSeconds` and `spec.schedulingGates`; a pod is "
                   "bound to a node through its binding subresource");
}

}  // namespace nos::sim
