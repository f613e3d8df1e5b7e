// The two subresources through which pods are scheduled and drained.
#pragma once

#include "sim/apiserver/storage/delete.h"

namespace nos::sim {

// POST pods/<name>/binding with a v1 Binding. Refusal: 409 when the pod is bound already, is being
// deleted or is gated.
Outcome<ObjectRef> BindPod(ApiState& state, const WriteRequest& request, const Json& binding);

// POST pods/<name>/eviction with a policy Eviction: a deletion that PodDisruptionBudgets may refuse
// with 429. Budgets are computed here from the pods that match them, because no controller keeps
// their status.
Outcome<Deletion> EvictPod(ApiState& state, const WriteRequest& request, const Json& eviction);

}  // namespace nos::sim
