// The subset of JSONPath for additionalPrinterColumns: ".spec.a", "['a']", "[0]", "[*]" and
// "[?(@.type==\"Ready\")]".
#pragma once

#include <string_view>
#include <vector>

#include "codec/json.h"

namespace nos::sim {

// The values at `path` in `value`, in order; empty if the path is malformed or matches no value.
std::vector<const Json*> EvaluatePath(std::string_view path, const Json& value);

}  // namespace nos::sim
