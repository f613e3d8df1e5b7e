#include "sim/apiserver/patching/list_rules.h"

#include <algorithm>

namespace nos::sim {
namespace {

enum Use : unsigned { kStrategic = 1, kApply = 2, kBoth = 3 };

struct Row {
  std::string_view storage;  // "": every type; "pod": pods and pod templates
  std::string_view path;
  std::string_view key, second_key;  // `key` "": the list is a set
  Use use;
};

// From the struct tags in k8s.io/api (1.32).
constexpr Row kRows[] = {
    {"", "metadata.finalizers", "", "", kBoth},
    {"", "metadata.ownerReferences", "uid", "", kBoth},
    {"", "status.conditions", "type", "", kBoth},
    {"pod", "spec.volumes", "name", "", kBoth},
    {"pod", "spec.containers", "name", "", kBoth},
    {"pod", "spec.initContainers", "name", "", kBoth},
    {"pod", "spec.ephemeralContainers", "name", "", kBoth},
    {"pod", "spec.imagePullSecrets", "name", "", kBoth},
    {"pod", "spec.hostAliases", "ip", "", kBoth},
    {"pod", "spec.schedulingGates", "name", "", kBoth},
    {"pod", "spec.resourceClaims", "name", "", kBoth},
    {"pod", "spec.topologySpreadConstraints", "topologyKey", "whenUnsatisfiable", kBoth},
    {"pod", "spec.containers.ports", "containerPort", "protocol", kBoth},
    {"pod", "spec.containers.env", "name", "", kBoth},
    {"pod", "spec.containers.volumeMounts", "mountPath", "", kBoth},
    {"pod", "spec.containers.volumeDevices", "devicePath", "", kBoth},
    {"pod", "spec.containers.resources.claims", "name", "", kApply},
    {"pod", "status.podIPs", "ip", "", kBoth},
    {"pod", "status.hostIPs", "ip", "", kStrategic},
    {"pod", "status.resourceClaimStatuses", "name", "", kBoth},
    {"nodes", "spec.podCIDRs", "", "", kBoth},
    {"nodes", "status.addresses", "type", "", kBoth},
    {"services", "spec.ports", "port", "protocol", kBoth},
    {"serviceaccounts", "secrets", "name", "", kBoth},
    {"validatingwebhookconfigurations.admissionregistration.k8s.io", "webhooks", "name", "", kBoth},
    {"mutatingwebhookconfigurations.admissionregistration.k8s.io", "webhooks", "name", "", kBoth},
    {"resourceclaims.resource.k8s.io", "status.reservedFor", "uid", "", kBoth},
    {"resourceclaims.resource.k8s.io", "status.devices.conditions", "type", "", kApply},
    {"endpointslices.discovery.k8s.io", "ports", "name", "", kStrategic},
};

struct AtomicRow {
  std::string_view storage, path;
};
constexpr AtomicRow kAtomics[] = {
    {"pod", "spec.nodeSelector"},
    {"pod", "spec.topologySpreadConstraints.labelSelector"},
    {"pod", "spec.containers.env.valueFrom.fieldRef"},
    {"pod", "spec.containers.env.valueFrom.resourceFieldRef"},
    {"pod", "spec.containers.env.valueFrom.configMapKeyRef"},
    {"pod", "spec.containers.env.valueFrom.secretKeyRef"},
    {"", "spec.selector"},
    {"", "involvedObject"},
    {"", "related"},
    {"", "roleRef"},
};

// Init and ephemeral containers have the merge rules of containers.
std::string_view AsContainers(std::string_view path, std::string& storage) {
  for (const std::string_view alias : {"spec.initContainers.", "spec.ephemeralContainers."}) {
    if (!path.starts_with(alias)) continue;
    storage = "spec.containers." + std::string(path.substr(alias.size()));
    return storage;
  }
  return path;
}

ListRule FromRow(const Row& row, Use use) {
  ListRule rule;
  rule.kind = row.key.empty() ? ListRule::Kind::kSet : ListRule::Kind::kMap;
  if (!row.key.empty()) rule.keys.push_back(row.key);
  if (!row.second_key.empty() && use == kApply) rule.keys.push_back(row.second_key);
  return rule;
}

bool Concerns(std::string_view row_storage, std::string_view storage, bool of_pod) {
  if (row_storage.empty()) return true;
  return row_storage == "pod" ? of_pod : row_storage == storage;
}

ListRule Lookup(std::string_view path, std::string_view storage, bool of_pod, Use use) {
  std::string buffer;
  if (of_pod) path = AsContainers(path, buffer);
  for (const Row& row : kRows) {
    if ((row.use & use) != 0 && row.path == path && Concerns(row.storage, storage, of_pod)) {
      return FromRow(row, use);
    }
  }
  return {};
}

}  // namespace

MergeRules::MergeRules(const ResourceType& type)
    : storage_(type.storage),
      is_pod_(type.pod_template == "."),
      is_custom_(type.custom != nullptr) {
  if (!type.pod_template.empty() && !is_pod_) template_prefix_ = type.pod_template + ".";
  if (is_custom_) AddSchema(type.custom->schema, "");
}

std::string_view MergeRules::Normal(std::string_view path, bool& of_pod) const {
  of_pod = is_pod_;
  if (!template_prefix_.empty() && path.starts_with(template_prefix_)) {
    of_pod = true;
    return path.substr(template_prefix_.size());
  }
  return path;
}

ListRule MergeRules::Strategic(std::string_view path) const {
  bool of_pod = false;
  path = Normal(path, of_pod);
  return Lookup(path, storage_, of_pod, kStrategic);
}

ListRule MergeRules::Apply(std::string_view path) const {
  if (const auto custom = custom_.find(path); custom != custom_.end()) {
    return {custom->second.kind, {custom->second.keys.begin(), custom->second.keys.end()}};
  }
  // The lists of a custom resource follow its schema.
  if (is_custom_ && !path.starts_with("metadata.")) return {};
  bool of_pod = false;
  path = Normal(path, of_pod);
  return Lookup(path, storage_, of_pod, kApply);
}

bool MergeRules::IsAtomic(std::string_view path) const {
  if (const auto custom = custom_.find(path); custom != custom_.end()) {
    return custom->second.atomic_map;
  }
  if (is_custom_) return false;
  bool of_pod = false;
  path = Normal(path, of_pod);
  std::string buffer;
  if (of_pod) path = AsContainers(path, buffer);
  return std::any_of(std::begin(kAtomics), std::end(kAtomics), [&](const AtomicRow& row) {
    return row.path == path && Concerns(row.storage, storage_, of_pod);
  });
}

void MergeRules::AddSchema(const Json& schema, const std::string& path) {
  const std::string_view list_type = FindString(schema, "x-kubernetes-list-type");
  if (list_type == "set") custom_[path] = {ListRule::Kind::kSet, {}, false};
  if (list_type == "map") {
    CustomRule rule{ListRule::Kind::kMap, {}, false};
    const Json* keys = Find(schema, "x-kubernetes-list-map-keys");
    if (keys != nullptr && keys->is_array()) {
      for (const Json& key : keys->get_array()) {
        if (key.is_string()) rule.keys.emplace_back(key.get_string());
      }
    }
    if (!rule.keys.empty()) custom_[path] = std::move(rule);
  }
  if (FindString(schema, "x-kubernetes-map-type") == "atomic") {
    custom_.try_emplace(path, CustomRule{ListRule::Kind::kAtomic, {}, true});
  }
  if (const Json* items = Find(schema, "items")) AddSchema(*items, path);
  const Json* properties = Find(schema, "properties");
  if (properties == nullptr || !properties->is_object()) return;
  for (const auto& [name, property] : properties->get_object()) {
    AddSchema(property, path.empty() ? std::string(name) : path + "." + std::string(name));
  }
}

}  // namespace nos::sim
