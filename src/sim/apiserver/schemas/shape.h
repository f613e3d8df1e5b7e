// Checks that the fields of an object have the JSON types of their kind: objects, parseable
// quantities, times and base64. A real server's decoder refuses such objects before all other
// checks. The types are in wire_schema.cc.
//
// Null counts as an absent field, and unknown fields pass, as in the real server. For custom
// resources only metadata is checked: the rest has its own schema.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Refusal: 400 with the first faulty field ("spec.taints[0].key"). REQUIRES: no deeper than
// kMaxDepth.
Check CheckShape(const ResourceType& type, const Json& object);
// The same for messages that are not stored objects: "Binding", "Eviction", "DeleteOptions".
Check CheckShape(std::string_view message, const Json& object);

}  // namespace nos::sim
