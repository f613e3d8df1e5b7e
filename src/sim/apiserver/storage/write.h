// Creating and changing objects: the path every write takes, whatever verb it came by.
#pragma once

#include "sim/apiserver/patching/managed_fields.h"
#include "sim/apiserver/storage/state.h"

namespace nos::sim {

struct WriteRequest {
  TypeRef type;             // as addressed
  ObjectKey key;            // name empty for a create with generateName
  std::string subresource;  // "" or "status"
  bool dry_run = false;
  FieldManager manager;
  // Server-side apply has done its own accounting of fields.
  bool applied = false;
};

// The object as sent, checked against the address: an object of the right kind, namespace, shape
// (shape.h) and bounded size. Fills in apiVersion, kind and namespace where they are missing.
Check CheckEnvelope(const ResourceType& type, const std::string& ns, Json& object);

// Both take the whole new object in stored form and return what is stored (with dry_run: what would
// be). REQUIRES: CheckEnvelope has passed, unknown fields are pruned (unknown.h) and the object is
// in stored form.
Outcome<ObjectRef> CreateObject(ApiState& state, const WriteRequest& request, Json object);
// A metadata.resourceVersion or uid in `object` is a precondition. An update that changes nothing
// is no write. May remove the object when it takes the last finalizer of one being deleted.
Outcome<ObjectRef> UpdateObject(ApiState& state, const WriteRequest& request, Json object);

}  // namespace nos::sim
