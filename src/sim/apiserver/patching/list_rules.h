// Merge rules for lists and maps of the served types: by key, as a set, or as a whole. Used by
// strategic merge patches (k8s.io/api: patchStrategy and patchMergeKey) and by server-side apply
// (listType, listMapKey, mapType in the OpenAPI schema); the two differ for some fields.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

struct ListRule {
  enum class Kind { kAtomic, kSet, kMap };
  Kind kind = Kind::kAtomic;
  std::vector<std::string_view> keys;  // for kMap; strategic merge patches use the first
};

// A path consists of the field names from the root joined by '.', without list elements:
// "spec.containers.ports".
class MergeRules {
 public:
  explicit MergeRules(const ResourceType& type);

  ListRule Strategic(std::string_view path) const;
  ListRule Apply(std::string_view path) const;
  // True for maps and structs that server-side apply replaces as a whole.
  bool IsAtomic(std::string_view path) const;

 private:
  // A rule from the schema of a CustomResourceDefinition.
  struct CustomRule {
    ListRule::Kind kind = ListRule::Kind::kAtomic;
    std::vector<std::string> keys;
    bool atomic_map = false;
  };
  std::string_view Normal(std::string_view path, bool& of_pod) const;
  void AddSchema(const Json& schema, const std::string& path);
  std::string storage_;
  std::string template_prefix_;  // "spec.template." or ""
  bool is_pod_ = false;
  bool is_custom_ = false;
  std::map<std::string, CustomRule, std::less<>> custom_;  // by path
};

}  // namespace nos::sim
