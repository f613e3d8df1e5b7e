// Creates and changes objects: the common path of all writing verbs.
#pragma once

#include "sim/apiserver/patching/managed_fields.h"
#include "sim/apiserver/storage/state.h"

namespace nos::sim {

struct WriteRequest {
  TypeRef type;             // the requested version
  ObjectKey key;            // `name` is empty for a create with generateName
  std::string subresource;  // "" or "status"
  bool dry_run = false;
  FieldManager manager;
  // Server-side apply has already updated managedFields.
  bool applied = false;
};

// Checks an object from a request: kind, namespace, shape (shape.h) and bounded size. Sets
// apiVersion, kind and namespace if they are missing.
Check CheckEnvelope(const ResourceType& type, const std::string& ns, Json& object);

// Both functions take the complete new object in stored form and return the stored object (with
// dry_run: the object that would be stored). REQUIRES: CheckEnvelope has passed, and unknown fields
// are pruned (unknown.h).
Outcome<ObjectRef> CreateObject(ApiState& state, const WriteRequest& request, Json object);
// metadata.resourceVersion and uid in `object` are preconditions. An update without changes is not
// written. Removes the object if it is being deleted and the update drops its last finalizer.
Outcome<ObjectRef> UpdateObject(ApiState& state, const WriteRequest& request, Json object);

}  // namespace nos::sim
