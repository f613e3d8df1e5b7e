// The effects of the real server's admission plugins and small controllers on a write: namespaces
// must exist, pods get their priority, namespaces get a service account, definitions take effect.
#pragma once

#include "sim/apiserver/storage/state.h"

namespace nos::sim {

// Completes a new object. Refusal: 403 or 404.
Check AdmitCreate(const ApiState& state, const ResourceType& type, const ObjectKey& key,
                  Json& object);
Check AdmitUpdate(const ResourceType& type, const Json& old, Json& object);
// Applies the side effects of a write.
void AfterWrite(ApiState& state, const ResourceType& type, const ObjectKey& key,
                const Json& object);

}  // namespace nos::sim
