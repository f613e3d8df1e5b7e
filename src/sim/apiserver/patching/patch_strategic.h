// Strategic merge patch: as JSON merge patch, but lists that have a key merge element by element,
// sets of scalars unite, and directives in the patch say more: $patch (replace, delete, merge),
// $deleteFromPrimitiveList/<field>, $setElementOrder/<field>, $retainKeys. What `kubectl apply`,
// `edit` and `patch` send for built-in types (k8s.io/apimachinery/pkg/util/strategicpatch).
#pragma once

#include "sim/apiserver/patching/list_rules.h"

namespace nos::sim {

// Refusal: 400 for a malformed directive or an element without its merge key. `target` is then in
// an unspecified state. REQUIRES: both no deeper than kMaxDepth.
Check StrategicPatch(Json& target, const Json& patch, const MergeRules& rules);

}  // namespace nos::sim
