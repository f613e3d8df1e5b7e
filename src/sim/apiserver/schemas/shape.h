// Whether the fields of an object have the JSON types that its kind gives them: an object where an
// object must be, quantities, times and base64 that can be read. What a real server's decoder
// refuses before it looks at anything else; the table is wire_schema.cc.
//
// null stands for an absent field everywhere, and fields that the table does not know pass, as
// there. Of custom resources only metadata is looked at: the rest has a schema of its own.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Refusal: 400 that names the first field at fault ("spec.taints[0].key").
// REQUIRES: no deeper than kMaxDepth.
Check CheckShape(const ResourceType& type, const Json& object);
// As above, for what is no stored object: "Binding", "Eviction", "DeleteOptions".
Check CheckShape(std::string_view message, const Json& object);

}  // namespace nos::sim
