// A ResourceClaim as far as this node's driver is concerned with it.
#pragma once

#include <string>
#include <vector>

#include "agent/claims/checkpoint.h"
#include "base/clock.h"
#include "base/status.h"
#include "dra/objects.h"
#include "kube/client.h"

namespace nos::agent {

extern const kube::Resource kResourceClaims;

struct AllocatedClaim {
  std::string ns, name, uid, resource_version;
  std::vector<ClaimedDevice> devices;  // of our driver and this pool; empty: none
  // The scheduler waits for condition dra::kCreated of a device, and no condition says how it went.
  bool waits = false;
  // spec.resourceClaims[].name of the pod for which it was made from a template; "": it was not.
  std::string pod_claim{};
};

// Any user may write claims: unknown devices are kept by name, and fail when they are made.
AllocatedClaim AllocationOn(const std::string& pool, const dra::ResourceClaim& claim);
// For a cache of claims: those that do not concern the pool keep only their key.
Status ReadAllocatedClaim(const std::string& pool, JsonSource json, AllocatedClaim& to);

// Writes the condition of each of the claim's devices: dra::kCreated if `created` is OK, else
// dra::kCreationFailed with its message. False: the claim is gone or has another allocation by now.
// Errors: kConflict (call again), and those of the client.
Result<bool> WriteCreated(kube::Client& client, const std::string& pool,
                          const AllocatedClaim& claim, const Status& created, Time now);

}  // namespace nos::agent
