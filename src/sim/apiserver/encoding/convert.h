// Between the form that a request's resource has and the one that is stored.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// `stored` is the type that owns the storage. Sets apiVersion and kind; events are renamed between
// the core group's fields and those of events.k8s.io.
void ToStored(const ResourceType& type, const ResourceType& stored, Json& object);
Json FromStored(const ResourceType& type, const Json& stored);

}  // namespace nos::sim
