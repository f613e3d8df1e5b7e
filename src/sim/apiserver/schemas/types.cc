#include "sim/apiserver/schemas/types.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/text.h"
#include "sim/apiserver/schemas/patterns.h"

namespace nos::sim {
namespace {

enum Trait : unsigned {
  kCluster = 1,     // cluster-scoped
  kStatus = 2,      // has a status subresource
  kGeneration = 4,  // maintains metadata.generation
  kAll = 8,         // listed by `kubectl get all`
  kAnyName = 16,
  kScale = 32,   // has a scale subresource
  kReturn = 64,  // a deletion answers with the object, not with a Status
};

struct BuiltIn {
  std::string_view group, version, plural, singular, kind, short_names;
  unsigned traits = 0;
  std::string_view pod_template;
};

// Names, short names, scopes and categories from `kubectl api-resources` of Kubernetes 1.32;
// resource.k8s.io as in 1.37.
constexpr BuiltIn kBuiltIns[] = {
    {"", "v1", "configmaps", "configmap", "ConfigMap", "cm", 0, ""},
    {"", "v1", "endpoints", "endpoints", "Endpoints", "ep", 0, ""},
    {"", "v1", "events", "event", "Event", "ev", 0, ""},
    {"", "v1", "limitranges", "limitrange", "LimitRange", "limits", 0, ""},
    {"", "v1", "namespaces", "namespace", "Namespace", "ns", kCluster | kStatus, ""},
    {"", "v1", "nodes", "node", "Node", "no", kCluster | kStatus, ""},
    {"", "v1", "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim", "pvc",
     kStatus | kReturn, ""},
    {"", "v1", "persistentvolumes", "persistentvolume", "PersistentVolume", "pv",
     kCluster | kStatus | kReturn, ""},
    {"", "v1", "pods", "pod", "Pod", "po", kStatus | kAll | kReturn, "."},
    {"", "v1", "replicationcontrollers", "replicationcontroller", "ReplicationController", "rc",
     kStatus | kGeneration | kAll | kScale, "spec.template"},
    {"", "v1", "resourcequotas", "resourcequota", "ResourceQuota", "quota", kStatus | kReturn, ""},
    {"", "v1", "secrets", "secret", "Secret", "", 0, ""},
    {"", "v1", "serviceaccounts", "serviceaccount", "ServiceAccount", "sa", kReturn, ""},
    {"", "v1", "services", "service", "Service", "svc", kStatus | kAll | kReturn, ""},
    {"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations",
     "mutatingwebhookconfiguration", "MutatingWebhookConfiguration", "", kCluster | kGeneration,
     ""},
    {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
     "validatingadmissionpolicy", "ValidatingAdmissionPolicy", "", kCluster | kStatus | kGeneration,
     ""},
    {"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
     "validatingadmissionpolicybinding", "ValidatingAdmissionPolicyBinding", "",
     kCluster | kGeneration, ""},
    {"admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations",
     "validatingwebhookconfiguration", "ValidatingWebhookConfiguration", "", kCluster | kGeneration,
     ""},
    {"apiextensions.k8s.io", "v1", "customresourcedefinitions", "customresourcedefinition",
     "CustomResourceDefinition", "crd,crds", kCluster | kStatus | kGeneration, ""},
    {"apps", "v1", "controllerrevisions", "controllerrevision", "ControllerRevision", "", 0, ""},
    {"apps", "v1", "daemonsets", "daemonset", "DaemonSet", "ds", kStatus | kGeneration | kAll,
     "spec.template"},
    {"apps", "v1", "deployments", "deployment", "Deployment", "deploy",
     kStatus | kGeneration | kAll | kScale, "spec.template"},
    {"apps", "v1", "replicasets", "replicaset", "ReplicaSet", "rs",
     kStatus | kGeneration | kAll | kScale, "spec.template"},
    {"apps", "v1", "statefulsets", "statefulset", "StatefulSet", "sts",
     kStatus | kGeneration | kAll | kScale, "spec.template"},
    {"autoscaling", "v2", "horizontalpodautoscalers", "horizontalpodautoscaler",
     "HorizontalPodAutoscaler", "hpa", kStatus | kAll, ""},
    {"batch", "v1", "cronjobs", "cronjob", "CronJob", "cj", kStatus | kGeneration | kAll,
     "spec.jobTemplate.spec.template"},
    {"batch", "v1", "jobs", "job", "Job", "", kStatus | kGeneration | kAll, "spec.template"},
    {"coordination.k8s.io", "v1", "leases", "lease", "Lease", "", 0, ""},
    {"discovery.k8s.io", "v1", "endpointslices", "endpointslice", "EndpointSlice", "", kGeneration,
     ""},
    {"events.k8s.io", "v1", "events", "event", "Event", "ev", 0, ""},
    {"networking.k8s.io", "v1", "ingressclasses", "ingressclass", "IngressClass", "",
     kCluster | kGeneration, ""},
    {"networking.k8s.io", "v1", "ingresses", "ingress", "Ingress", "ing", kStatus | kGeneration,
     ""},
    {"networking.k8s.io", "v1", "networkpolicies", "networkpolicy", "NetworkPolicy", "netpol",
     kGeneration, ""},
    {"node.k8s.io", "v1", "runtimeclasses", "runtimeclass", "RuntimeClass", "", kCluster, ""},
    {"policy", "v1", "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", "pdb",
     kStatus | kGeneration, ""},
    {"rbac.authorization.k8s.io", "v1", "clusterrolebindings", "clusterrolebinding",
     "ClusterRoleBinding", "", kCluster | kAnyName, ""},
    {"rbac.authorization.k8s.io", "v1", "clusterroles", "clusterrole", "ClusterRole", "",
     kCluster | kAnyName, ""},
    {"rbac.authorization.k8s.io", "v1", "rolebindings", "rolebinding", "RoleBinding", "", kAnyName,
     ""},
    {"rbac.authorization.k8s.io", "v1", "roles", "role", "Role", "", kAnyName, ""},
    {"resource.k8s.io", "v1", "deviceclasses", "deviceclass", "DeviceClass", "",
     kCluster | kGeneration | kReturn, ""},
    {"resource.k8s.io", "v1", "devicetaintrules", "devicetaintrule", "DeviceTaintRule", "",
     kCluster | kStatus | kGeneration, ""},
    {"resource.k8s.io", "v1", "resourceclaims", "resourceclaim", "ResourceClaim", "",
     kStatus | kReturn, ""},
    {"resource.k8s.io", "v1", "resourceclaimtemplates", "resourceclaimtemplate",
     "ResourceClaimTemplate", "", kReturn, ""},
    {"resource.k8s.io", "v1", "resourceslices", "resourceslice", "ResourceSlice", "",
     kCluster | kGeneration | kReturn, ""},
    {"scheduling.k8s.io", "v1", "priorityclasses", "priorityclass", "PriorityClass", "pc",
     kCluster | kGeneration, ""},
    {"storage.k8s.io", "v1", "csidrivers", "csidriver", "CSIDriver", "", kCluster | kReturn, ""},
    {"storage.k8s.io", "v1", "csinodes", "csinode", "CSINode", "", kCluster | kReturn, ""},
    {"storage.k8s.io", "v1", "storageclasses", "storageclass", "StorageClass", "sc",
     kCluster | kReturn, ""},
    {"storage.k8s.io", "v1", "volumeattachments", "volumeattachment", "VolumeAttachment", "",
     kCluster | kStatus | kReturn, ""},
};

std::vector<std::string> Words(std::string_view comma_separated) {
  std::vector<std::string> words;
  for (const std::string_view word : Split(comma_separated, ',')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

ResourceType FromTable(const BuiltIn& row) {
  ResourceType type;
  type.group = row.group;
  type.version = row.version;
  type.plural = row.plural;
  type.singular = row.singular;
  type.kind = row.kind;
  type.short_names = Words(row.short_names);
  if ((row.traits & kAll) != 0) type.categories = {"all"};
  type.namespaced = (row.traits & kCluster) == 0;
  type.has_status = (row.traits & kStatus) != 0;
  type.has_generation = (row.traits & kGeneration) != 0;
  type.returns_deleted = (row.traits & kReturn) != 0;
  if ((row.traits & kAnyName) != 0) type.name_rule = NameRule::kPathSegment;
  if (type.kind == "Namespace" || type.kind == "Service") type.name_rule = NameRule::kLabel;
  type.pod_template = row.pod_template;
  if ((row.traits & kScale) != 0) {
    type.scale = JsonObject{{"specReplicasPath", ".spec.replicas"},
                            {"statusReplicasPath", ".status.replicas"},
                            {"labelSelectorPath", ".spec.selector"}};
  }
  type.storage = type.kind == "Event" ? kEventStorage : type.GroupResource();
  return type;
}

std::vector<std::string> Strings(const Json* array) {
  std::vector<std::string> strings;
  if (array == nullptr || !array->is_array()) return strings;
  for (const Json& value : array->get_array()) {
    if (value.is_string()) strings.emplace_back(value.get_string());
  }
  return strings;
}

ResourceType FromDefinition(const Json& definition, const Json& version) {
  ResourceType type;
  type.group = FindString(definition, "spec", "group");
  type.version = FindString(version, "name");
  type.plural = FindString(definition, "spec", "names", "plural");
  type.kind = FindString(definition, "spec", "names", "kind");
  type.singular = FindString(definition, "spec", "names", "singular");
  if (type.singular.empty()) type.singular = ToLower(type.kind);
  type.short_names = Strings(Find(definition, "spec", "names", "shortNames"));
  type.categories = Strings(Find(definition, "spec", "names", "categories"));
  type.namespaced = FindString(definition, "spec", "scope") == "Namespaced";
  type.has_status = Find(version, "subresources", "status") != nullptr;
  type.has_generation = true;
  type.storage = type.GroupResource();
  auto custom = std::make_shared<CustomType>();
  if (const Json* schema = Find(version, "schema", "openAPIV3Schema")) custom->schema = *schema;
  custom->patterns = std::make_shared<const Patterns>(custom->schema);
  if (const Json* columns = Find(version, "additionalPrinterColumns")) custom->columns = *columns;
  if (const Json* scale = Find(version, "subresources", "scale")) type.scale = *scale;
  type.custom = std::move(custom);
  return type;
}

bool IsTrue(const Json* value) { return value != nullptr && value->is_bool() && value->get_bool(); }

// Sorts v2 before v1 before v1beta2 before v1beta1 before v1alpha1 (apimachinery/pkg/version).
int VersionRank(std::string_view version) {
  if (version.find("alpha") != std::string_view::npos) return 0;
  return version.find("beta") != std::string_view::npos ? 1 : 2;
}

}  // namespace

Refusal ObjectNotFound(const ResourceType& type, std::string_view name) {
  Refusal refusal = UnknownPath();
  refusal.message = fmt::format("{} \"{}\" not found", type.GroupResource(), name);
  refusal.group = type.group;
  refusal.kind = type.plural;
  refusal.name = name;
  return refusal;
}

Refusal ObjectExists(const ResourceType& type, std::string_view name) {
  Refusal refusal = ObjectNotFound(type, name);
  refusal.code = 409;
  refusal.reason = "AlreadyExists";
  refusal.message = fmt::format("{} \"{}\" already exists", type.GroupResource(), name);
  return refusal;
}

Refusal ObjectConflict(const ResourceType& type, std::string_view name, std::string_view why) {
  Refusal refusal = ObjectNotFound(type, name);
  refusal.code = 409;
  refusal.reason = "Conflict";
  refusal.message = fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                                type.GroupResource(), name, why);
  return refusal;
}

Refusal ObjectInvalid(const ResourceType& type, std::string_view name, std::vector<Cause> causes) {
  Refusal refusal = ObjectNotFound(type, name);
  refusal.code = 422;
  refusal.reason = "Invalid";
  refusal.kind = type.kind;
  std::vector<std::string> parts;
  parts.reserve(causes.size());
  for (const Cause& cause : causes) parts.push_back(cause.field + ": " + cause.message);
  const std::string list = parts.size() == 1 ? parts[0] : "[" + Join(parts, ", ") + "]";
  const std::string kind = type.group.empty() ? type.kind : type.kind + "." + type.group;
  refusal.message = fmt::format("{} \"{}\" is invalid: {}", kind, name, list);
  refusal.causes = std::move(causes);
  return refusal;
}

TypeRegistry::TypeRegistry() {
  for (const BuiltIn& row : kBuiltIns) {
    const auto type = std::make_shared<const ResourceType>(FromTable(row));
    types_[{type->group, type->version, type->plural}] = type;
    owners_.emplace(type->storage, type);  // the first type of a storage owns it
  }
}

TypeRef TypeRegistry::Find(std::string_view group, std::string_view version,
                           std::string_view plural) const {
  const auto found = types_.find({std::string(group), std::string(version), std::string(plural)});
  return found == types_.end() ? nullptr : found->second;
}

TypeRef TypeRegistry::OfStorage(std::string_view storage) const {
  const auto found = owners_.find(storage);
  return found == owners_.end() ? nullptr : found->second;
}

void TypeRegistry::PutDefinition(const Json& definition) {
  RemoveDefinition(FindString(definition, "spec", "names", "plural"),
                   FindString(definition, "spec", "group"));
  const Json* versions = nos::Find(definition, "spec", "versions");
  if (versions == nullptr || !versions->is_array()) return;
  for (const Json& version : versions->get_array()) {
    const auto type = std::make_shared<const ResourceType>(FromDefinition(definition, version));
    if (IsTrue(nos::Find(version, "storage"))) owners_[type->storage] = type;
    if (IsTrue(nos::Find(version, "served"))) {
      types_[{type->group, type->version, type->plural}] = type;
    }
  }
}

void TypeRegistry::RemoveDefinition(std::string_view plural, std::string_view group) {
  const auto is_it = [&](const auto& entry) {
    return entry.second->custom != nullptr && entry.second->plural == plural &&
           entry.second->group == group;
  };
  std::erase_if(types_, is_it);
  std::erase_if(owners_, is_it);
}

std::vector<TypeRef> TypeRegistry::All() const {
  std::vector<TypeRef> all;
  all.reserve(types_.size());
  for (const auto& [id, type] : types_) all.push_back(type);
  return all;
}

std::vector<std::string> TypeRegistry::VersionsOf(std::string_view group) const {
  std::vector<std::string> versions;
  for (const auto& [id, type] : types_) {
    if (type->group != group) continue;
    if (std::find(versions.begin(), versions.end(), type->version) == versions.end()) {
      versions.push_back(type->version);
    }
  }
  std::sort(versions.begin(), versions.end(), [](const std::string& a, const std::string& b) {
    return std::pair(VersionRank(a), a) > std::pair(VersionRank(b), b);
  });
  return versions;
}

std::vector<std::string> TypeRegistry::Groups() const {
  std::vector<std::string> groups;
  for (const auto& [id, type] : types_) {
    if (!type->group.empty() && (groups.empty() || groups.back() != type->group)) {
      groups.push_back(type->group);
    }
  }
  return groups;
}

}  // namespace nos::sim
