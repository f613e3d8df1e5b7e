// Strategic merge patch: a JSON merge patch in which lists with a key merge element by element and
// sets of scalars are united. Directives in the patch: $patch (replace, delete, merge),
// $deleteFromPrimitiveList/<field>, $setElementOrder/<field>, $retainKeys. `kubectl apply`, `edit`
// and `patch` send it for built-in types (k8s.io/apimachinery/pkg/util/strategicpatch).
#pragma once

#include "sim/apiserver/patching/list_rules.h"

namespace nos::sim {

// Refusal: 400 for a malformed directive or an element without its merge key. After a refusal the
// state of `target` is unspecified. REQUIRES: both no deeper than kMaxDepth.
Check StrategicPatch(Json& target, const Json& patch, const MergeRules& rules);

}  // namespace nos::sim
