// Sets of fields as metadata.managedFields records them (fieldsV1): a tree in JSON whose keys are
// "f:<field>", "k:<keys of a list element>", "v:<element of a set>" and "." (the node itself). A
// leaf is an empty object.
//
//   {"f:spec": {"f:containers": {"k:{\"name\":\"a\"}": {".": {}, "f:image": {}}}}}
//
// All functions are pure; sets are plain JsonObjects.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/apiserver/patching/list_rules.h"

namespace nos::sim {

using FieldSet = JsonObject;

// The fields that `object` sets, without those that the server itself keeps.
FieldSet FieldsOf(const Json& object, const MergeRules& rules);

struct FieldChanges {
  FieldSet changed;  // added or with another value
  FieldSet removed;
};
FieldChanges CompareFields(const Json& before, const Json& after, const MergeRules& rules);

FieldSet Unite(const FieldSet& a, const FieldSet& b);
FieldSet Subtract(const FieldSet& a, const FieldSet& b);
FieldSet Intersect(const FieldSet& a, const FieldSet& b);
// Members as people read them: ".spec.containers[name=\"a\"].image".
std::vector<std::string> FieldPaths(const FieldSet& set);

// Where a list names an element twice, as the real server words it:
// ".spec.containers: duplicate entries for key [name=\"a\"]". "" when none does.
std::string DuplicateElement(const Json& config, const MergeRules& rules);

// `live` with `config` laid over it, as server-side apply merges.
void MergeApplied(Json& live, const Json& config, const MergeRules& rules);
// Takes the fields of `set` out of the object; a list element or map that `kept` still names stays.
void RemoveFields(Json& object, const FieldSet& set, const FieldSet& kept, const MergeRules& rules);

}  // namespace nos::sim
