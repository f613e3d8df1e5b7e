// The part of JSONPath that additionalPrinterColumns use: ".spec.a", "['a']", "[0]", "[*]" and
// "[?(@.type==\"Ready\")]".
#pragma once

#include <string_view>
#include <vector>

#include "codec/json.h"

namespace nos::sim {

// The values at `path` in `value`, in order; none when the path is malformed or leads nowhere.
std::vector<const Json*> EvaluatePath(std::string_view path, const Json& value);

}  // namespace nos::sim
