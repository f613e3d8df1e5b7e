// Sets of fields in the format of metadata.managedFields (fieldsV1): a JSON tree with the keys
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

// The fields that `object` sets, except fields that the server writes.
FieldSet FieldsOf(const Json& object, const MergeRules& rules);

struct FieldChanges {
  FieldSet changed;  // added, or with another value
  FieldSet removed;
};
FieldChanges CompareFields(const Json& before, const Json& after, const MergeRules& rules);

FieldSet Unite(const FieldSet& a, const FieldSet& b);
FieldSet Subtract(const FieldSet& a, const FieldSet& b);
FieldSet Intersect(const FieldSet& a, const FieldSet& b);
// Members in readable form: ".spec.containers[name=\"a\"].image".
std::vector<std::string> FieldPaths(const FieldSet& set);

// The first repeated element of a keyed list, in the words of the real server: ".spec.containers:
// duplicate entries for key [name=\"a\"]". "" if there is none.
std::string DuplicateElement(const Json& config, const MergeRules& rules);

// Merges `config` into `live` by the rules of server-side apply.
void MergeApplied(Json& live, const Json& config, const MergeRules& rules);
// Removes the fields of `set` from the object. A list element or map that is also in `kept` stays.
void RemoveFields(Json& object, const FieldSet& set, const FieldSet& kept, const MergeRules& rules);

}  // namespace nos::sim
