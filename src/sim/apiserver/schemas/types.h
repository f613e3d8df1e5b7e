// The served resources: a fixed table of built-in ones, and those that CustomResourceDefinitions
// add at run time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "codec/json.h"
#include "sim/apiserver/objects/reply.h"

namespace nos::sim {

// Rules for object names (k8s.io/apimachinery/pkg/util/validation).
enum class NameRule {
  kSubdomain,    // RFC 1123 subdomain, up to 253 characters: most kinds
  kLabel,        // RFC 1123 label, up to 63 characters: namespaces
  kPathSegment,  // any path segment: RBAC
};

class Patterns;

// One version of a CustomResourceDefinition.
struct CustomType {
  Json schema;                               // openAPIV3Schema; null if absent
  std::shared_ptr<const Patterns> patterns;  // of the schema; never null
  Json columns;                              // additionalPrinterColumns; null if absent
};

struct ResourceType {
  std::string group;  // "" for core
  std::string version, plural, singular, kind;
  std::vector<std::string> short_names, categories;
  bool namespaced = true;
  bool has_status = false;       // a status subresource, which writes to the object do not change
  bool has_generation = false;   // metadata.generation counts changes of the spec
  bool returns_deleted = false;  // a deletion answers with the object, not with a Status
  NameRule name_rule = NameRule::kSubdomain;
  // Path of the PodTemplateSpec ("spec.template"), "" if the type has none. A pod is its own
  // template.
  std::string pod_template;
  // Paths of the scale subresource, as in a CustomResourceDefinition; null if there is none. At
  // labelSelectorPath, built-in types have the selector itself.
  Json scale;
  // Types with equal storage share their objects ("events" in both groups).
  std::string storage;
  std::shared_ptr<const CustomType> custom;  // null for built-in types

  std::string ApiVersion() const { return group.empty() ? version : group + "/" + version; }
  // The name in messages: "pods", "leases.coordination.k8s.io".
  std::string GroupResource() const { return group.empty() ? plural : plural + "." + group; }
  bool HasScale() const { return scale.is_object(); }
  bool IsCore(std::string_view name) const { return group.empty() && plural == name; }
};

using TypeRef = std::shared_ptr<const ResourceType>;

Refusal ObjectNotFound(const ResourceType& type, std::string_view name);
Refusal ObjectExists(const ResourceType& type, std::string_view name);
// 409: the object is not in the state that the request requires.
Refusal ObjectConflict(const ResourceType& type, std::string_view name, std::string_view why);
// 422 with its causes. REQUIRES: !causes.empty().
Refusal ObjectInvalid(const ResourceType& type, std::string_view name, std::vector<Cause> causes);

// Not thread-safe.
class TypeRegistry {
 public:
  TypeRegistry();

  // Null if unknown.
  TypeRef Find(std::string_view group, std::string_view version, std::string_view plural) const;
  // The type that owns a storage: stored objects have its apiVersion.
  TypeRef OfStorage(std::string_view storage) const;
  // Replaces the types that a definition of this name added before. REQUIRES: the definition is
  // valid.
  void PutDefinition(const Json& definition);
  void RemoveDefinition(std::string_view plural, std::string_view group);
  // Sorted by group, version, plural.
  std::vector<TypeRef> All() const;
  // The versions of a group, the preferred one first.
  std::vector<std::string> VersionsOf(std::string_view group) const;
  std::vector<std::string> Groups() const;  // without core

 private:
  using Id = std::tuple<std::string, std::string, std::string>;
  std::map<Id, TypeRef> types_;
  std::map<std::string, TypeRef, std::less<>> owners_;  // by storage
};

// Storage names of types with special treatment in the server.
inline constexpr char kNamespaceStorage[] = "namespaces";
inline constexpr char kPodStorage[] = "pods";
inline constexpr char kEventStorage[] = "events";
inline constexpr char kPriorityClassStorage[] = "priorityclasses.scheduling.k8s.io";
inline constexpr char kBudgetStorage[] = "poddisruptionbudgets.policy";
inline constexpr char kDefinitionStorage[] = "customresourcedefinitions.apiextensions.k8s.io";
inline constexpr char kServiceAccountStorage[] = "serviceaccounts";

}  // namespace nos::sim
