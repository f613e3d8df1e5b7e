// The fields of the kinds served, as OpenAPI v3 schemas: what `kubectl explain` prints. Built-in
// kinds come from wire_schema.cc, which has names and types; custom ones bring their own schema.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Adds to "components/schemas" the schema of a kind and of all that it refers to. That of the kind
// itself carries x-kubernetes-group-version-kind.
void AddOpenApiSchema(const ResourceType& type, JsonObject& schemas);

}  // namespace nos::sim
