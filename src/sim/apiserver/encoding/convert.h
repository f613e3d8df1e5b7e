// Conversion between the requested API version of an object and its stored form.
#pragma once

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// `stored` is the type that owns the storage. Sets apiVersion and kind, and renames the fields of
// Events between the core group and events.k8s.io.
void ToStored(const ResourceType& type, const ResourceType& stored, Json& object);
Json FromStored(const ResourceType& type, const Json& stored);

}  // namespace nos::sim
