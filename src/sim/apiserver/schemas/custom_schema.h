// Applies the structural schema of a CustomResourceDefinition: prunes unknown fields, sets defaults
// and reports violations.
#pragma once

#include "sim/apiserver/schemas/patterns.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {

// Removes unknown fields (apiVersion, kind and metadata are always known) and sets defaults.
void PruneAndDefault(const Json& schema, Json& object);
// Only removes unknown fields, and adds their paths to `unknown`.
void Prune(const Json& schema, Json& object, std::vector<std::string>& unknown);
// Checks type, nullable, enum, required, minimum/maximum, multipleOf, lengths, pattern, numbers of
// items and properties, x-kubernetes-int-or-string, and lists of type set and map for duplicates.
// Does not check rules in UnappliedRules (custom_rules.h). `patterns` are those of the whole
// schema.
void ValidateSchema(const Json& schema, const Patterns& patterns, const Json& value,
                    const std::string& path, Causes& causes);

}  // namespace nos::sim
