// The structural schema of a CustomResourceDefinition at work: what it does not know is pruned,
// what is missing is defaulted, and what does not fit is reported.
#pragma once

#include "sim/apiserver/schemas/patterns.h"
#include "sim/apiserver/schemas/validation.h"

namespace nos::sim {

// Removes unknown fields (apiVersion, kind and metadata are always known) and sets defaults.
void PruneAndDefault(const Json& schema, Json& object);
// Removes them only, and adds their paths to `unknown`.
void Prune(const Json& schema, Json& object, std::vector<std::string>& unknown);
// type, nullable, enum, required, minimum/maximum, multipleOf, lengths, pattern, counts of items
// and properties, x-kubernetes-int-or-string, lists of type set and map without duplicates. Not:
// what UnappliedRules (schema_rules.h) names. `patterns` are those of the whole schema.
void ValidateSchema(const Json& schema, const Patterns& patterns, const Json& value,
                    const std::string& path, Causes& causes);

}  // namespace nos::sim
