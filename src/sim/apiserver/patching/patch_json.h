// JSON Patch (RFC 6902): add, remove, replace, move, copy, test, in order, all or nothing.
#pragma once

#include "sim/apiserver/objects/reply.h"

namespace nos::sim {

// Refusal: 400 for a malformed patch; 422 if an operation does not apply to the target (a missing
// path, a failed test). After a refusal the state of `target` is unspecified.
Check JsonPatch(Json& target, const Json& patch);

}  // namespace nos::sim
