// JSON Merge Patch (RFC 7396): objects merge, null removes, other values replace.
#pragma once

#include "codec/json.h"

namespace nos::sim {

// REQUIRES: both no deeper than kMaxDepth.
void MergePatch(Json& target, const Json& patch);

}  // namespace nos::sim
