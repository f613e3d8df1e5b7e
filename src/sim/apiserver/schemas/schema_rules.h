// Which rules of a CustomResourceDefinition's schemas are at work here. Some of a real server's are
// not (CEL, oneOf and the like, formats): whoever writes such a definition is told.
#pragma once

#include <string>
#include <vector>

#include "base/function_ref.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {

// The schema and all those inside it by properties, items and additionalProperties, each with its
// path: ".properties.spec.items". Not those inside oneOf and the like.
using SchemaVisitor = FunctionRef<void(const Json& schema, const std::string& path)>;
void VisitSchemas(const Json& schema, const std::string& path, SchemaVisitor visit);

// Malformed patterns of a version's schema at `field`.
void ValidatePatterns(const Json& schema, const std::string& field, Causes& causes);
// "spec.versions[0].schema.openAPIV3Schema.properties.spec: oneOf, format are not applied by this
// simulated API server": of the first schemas that have any.
std::vector<std::string> UnappliedRules(const Json& definition);

}  // namespace nos::sim
