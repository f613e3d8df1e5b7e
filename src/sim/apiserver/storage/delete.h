// Deletion with the semantics of Kubernetes: grace periods, finalizers, preconditions, and
// cascading deletion of dependents, of a namespace's content and of a definition's resources.
#pragma once

#include <optional>

#include "sim/apiserver/storage/write.h"

namespace nos::sim {

struct DeleteOptions {
  std::optional<int64_t> grace_seconds;
  std::string propagation;            // Background, Foreground, Orphan; empty: as the type has it
  std::string uid, resource_version;  // preconditions; empty: none
  bool dry_run = false;
};

// From a metav1.DeleteOptions body (or null) and the query. Refusal: 400, 422.
Outcome<DeleteOptions> ParseDeleteOptions(const kube::ApiRequest& request);

// The object, now being deleted; or its last state if it was removed at once (`gone`).
struct Deletion {
  ObjectRef object;
  bool gone = false;
};
Outcome<Deletion> DeleteObject(ApiState& state, const WriteRequest& request,
                               const DeleteOptions& options);

// Removes expired objects (Store::ExpireAt) regardless of finalizers, as etcd does.
void RemoveExpired(ApiState& state);

// Removes an object that is being deleted once nothing blocks that.
void FinishDeletion(ApiState& state, const Place& place);

}  // namespace nos::sim
