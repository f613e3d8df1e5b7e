// Fields that an object's kind does not have. A real server's decoder drops them, and says so when
// it is asked to: a typo never becomes part of a stored object.
//
// What built-in kinds have is wire_schema.cc, which is complete; inside its O (a few volume sources
// and alpha features, schemas of definitions) and R nothing is dropped. What custom resources have
// is their schema, where x-kubernetes-preserve-unknown-fields keeps the rest.
#pragma once

#include <string>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// An object may have any number, of any length: so many are told, by so much of their paths.
inline constexpr size_t kMaxUnknownTold = 20;
inline constexpr size_t kMaxPathTold = 200;

// Removes them; returns the paths of the first ones ("spec.containers[0].resorces").
// REQUIRES: CheckShape has passed.
std::vector<std::string> PruneUnknown(const ResourceType& type, Json& object);

// A path cut to kMaxPathTold, not within a character of UTF-8.
std::string Told(std::string_view path);

// Keys that stand twice in one object ("metadata.labels.a"). REQUIRES: ParseJson takes the text.
std::vector<std::string> DuplicateKeys(std::string_view text);

}  // namespace nos::sim
