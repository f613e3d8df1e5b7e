// The fields of served kinds as OpenAPI v3 schemas, for `kubectl explain`. Schemas of built-in
// kinds are generated from wire_schema.cc, which has names and types; custom kinds bring their own.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Adds the schema of a kind and of every type that it refers to, to "components/schemas". The
// schema of the kind has x-kubernetes-group-version-kind.
void AddOpenApiSchema(const ResourceType& type, JsonObject& schemas);

}  // namespace nos::sim
