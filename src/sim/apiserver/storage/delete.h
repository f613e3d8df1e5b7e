// Deletion as Kubernetes does it: grace periods, finalizers, preconditions, and what goes with an
// object: its dependents, a namespace's content, a definition's resources.
#pragma once

#include <optional>

#include "sim/apiserver/storage/write.h"

namespace nos::sim {

struct DeleteOptions {
  std::optional<int64_t> grace_seconds;
  std::string propagation = "Background";  // or "Foreground", "Orphan"
  std::string uid, resource_version;       // preconditions; empty: none
  bool dry_run = false;
};

// From a metav1.DeleteOptions body (or null) and the query. Refusal: 400, 422.
Outcome<DeleteOptions> ParseDeleteOptions(const kube::ApiRequest& request);

// What is left: the object, now being deleted, or its last state when it is gone at once.
struct Deletion {
  ObjectRef object;
  bool gone = false;
};
Outcome<Deletion> DeleteObject(ApiState& state, const WriteRequest& request,
                               const DeleteOptions& options);

// Removes what has lived its time (Store::ExpireAt), as etcd does: whatever its finalizers say.
void RemoveExpired(ApiState& state);

// Removes an object being deleted that nothing holds any more.
void FinishDeletion(ApiState& state, const Place& place);

}  // namespace nos::sim
