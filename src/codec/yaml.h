// YAML as Kubernetes uses it: every document becomes the JSON tree that kubectl would send.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json.h"

namespace nos {

// All non-empty documents of `text`. Plain scalars become null, booleans, integers or doubles by
// the YAML 1.2 core schema, but numbers as Kubernetes reads them: 0x10 is 16, 010 is 8, 1e1 is the
// integer 10; quoted ones stay strings. Aliases are expanded, within a limit of 50 million values,
// so that a small hostile file cannot exhaust memory. A merge key (<<) gives a mapping the keys of
// others that it does not have itself. A key twice in one mapping is refused, and
// text that is not UTF-8 (in JSON it could not be written again). JSON is accepted too (as YAML
// is). Error: kInvalid with document (1-based), line and column.
Result<std::vector<Json>> ParseYaml(std::string_view text);

}  // namespace nos
