// The scale subresource: an autoscaling/v1 Scale that reads and sets the number of replicas at the
// paths of the type, for custom resources those of the CustomResourceDefinition.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// Refusal: 500 if the object has no number of replicas, like the real server. REQUIRES:
// type.HasScale().
Outcome<Json> ScaleOf(const ResourceType& type, const Json& object);
// Sets the replicas; also copies metadata.resourceVersion and uid as preconditions of the
// subsequent update. Refusal: 400, 422. REQUIRES: type.HasScale().
Check PutScale(const ResourceType& type, const Json& scale, Json& object);

// True for paths that a definition may specify: ".spec.a.b", without brackets.
bool IsScalePath(std::string_view path, std::string_view root);

}  // namespace nos::sim
