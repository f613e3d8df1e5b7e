// The scale subresource of custom resources: an autoscaling/v1 Scale that shows and sets the number
// of replicas, wherever in the object its definition says that it stands.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Refusal: 500 when the object does not say how many replicas it wants, as the real server has it.
// REQUIRES: type.HasScale().
Outcome<Json> ScaleOf(const ResourceType& type, const Json& object);
// Sets the replicas, and metadata.resourceVersion and uid as preconditions of the update to follow.
// Refusal: 400, 422. REQUIRES: type.HasScale().
Check PutScale(const ResourceType& type, const Json& scale, Json& object);

// The paths that a definition may give: ".spec.a.b", without brackets.
bool IsScalePath(std::string_view path, std::string_view root);

}  // namespace nos::sim
