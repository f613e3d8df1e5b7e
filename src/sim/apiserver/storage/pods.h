// The pod subresources binding and eviction.
#pragma once

#include "sim/apiserver/storage/delete.h"

namespace nos::sim {

// POST pods/<name>/binding with a v1 Binding. Refusal: 409 if the pod is already bound, is being
// deleted or has scheduling gates.
Outcome<ObjectRef> BindPod(ApiState& state, const WriteRequest& request, const Json& binding);

// POST pods/<name>/eviction with a policy Eviction: a deletion that PodDisruptionBudgets may refuse
// with 429. Budgets are evaluated here from the pods that they match, because no controller updates
// their status.
Outcome<Deletion> EvictPod(ApiState& state, const WriteRequest& request, const Json& eviction);

}  // namespace nos::sim
