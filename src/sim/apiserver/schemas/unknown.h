// Unknown fields, which the kind of an object does not have. A real server's decoder drops them and
// reports them on request, so a misspelt field never becomes part of a stored object.
//
// The fields of built-in kinds are in wire_schema.cc, which is complete; the content of its O (a
// few volume sources and alpha features, schemas of definitions) and R is never dropped. The fields
// of custom resources are in their schema, where x-kubernetes-preserve-unknown-fields keeps unknown
// ones.
#pragma once

#include <string>
#include <vector>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// An object may have any number of unknown fields, of any length; reports are limited to this many
// paths of this length.
inline constexpr size_t kMaxUnknownReported = 20;
inline constexpr size_t kMaxPathReported = 200;

// Removes unknown fields; returns the paths of the first ones ("spec.containers[0].resorces").
// REQUIRES: CheckShape has passed.
std::vector<std::string> PruneUnknown(const ResourceType& type, Json& object);

// The path truncated to kMaxPathReported, not within a UTF-8 character.
std::string Truncated(std::string_view path);

// Keys that occur twice in an object ("metadata.labels.a"). REQUIRES: ParseJson accepts the text.
std::vector<std::string> DuplicateKeys(std::string_view text);

}  // namespace nos::sim
