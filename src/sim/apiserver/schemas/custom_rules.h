// The rules of CustomResourceDefinition schemas that this server applies. It does not apply some
// rules of a real server (CEL, oneOf and the like, formats) and warns the author of such a
// definition.
#pragma once

#include <string>
#include <vector>

#include "base/function_ref.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {

// Visits the schema and all schemas nested in it by properties, items and additionalProperties,
// each with its path: ".properties.spec.items". Does not visit schemas in oneOf and the like.
using SchemaVisitor = FunctionRef<void(const Json& schema, const std::string& path)>;
void VisitSchemas(const Json& schema, const std::string& path, SchemaVisitor visit);

// Reports malformed patterns in a version's schema at `field`.
void ValidatePatterns(const Json& schema, const std::string& field, Causes& causes);
// "spec.versions[0].schema.openAPIV3Schema.properties.spec: oneOf, format are not applied by this
// simulated API server", for the first schemas with such rules.
std::vector<std::string> UnappliedRules(const Json& definition);

}  // namespace nos::sim
