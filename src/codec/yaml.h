// YAML as Kubernetes uses it: every document becomes the JSON tree that kubectl would send.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"

namespace nos {

// Returns all non-empty documents of `text`. Plain scalars become null, booleans, integers or
// doubles by the YAML 1.2 core schema, but numbers are read as Kubernetes reads them: 0x10 is 16,
// 010 is 8, 1e1 is the integer 10; quoted scalars stay strings. Aliases are expanded, within a
// limit of 1 MiB and 8 times the size of `text`, so that a small hostile file cannot exhaust
// memory. A merge key (<<) adds the keys of other mappings that the mapping itself does not have.
// Duplicate keys in a mapping are refused, and so is text that is not UTF-8 (JSON could not express
// it). JSON is accepted too, as a subset of YAML. Error: kInvalid with document (1-based), line and
// column.
Result<std::vector<Json>> ParseYaml(std::string_view text);

// One document in block style, as kubectl prints: two blanks for each level, lists not indented.
// Texts that YAML could read as something else, or that hold more than letters, digits and ._/@+-,
// are in double quotes with JSON's escapes. ParseYaml returns the same value, but whole doubles as
// integers. `value` may be of any kind; the text ends in '\n'.
std::string WriteYaml(const Json& value);

}  // namespace nos
