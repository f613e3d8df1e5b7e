// Allocations chosen for a pod, from the decision until they are stored: assumed in the index of
// devices, written to the API server, then awaited.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"
#include "dra/device_index.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

// Kept in CycleState.
struct AssumedClaims {
  struct Change {
    std::shared_ptr<const dra::ResourceClaim> claim;  // when it was chosen
    dra::Allocation allocation;
    bool allocates = false;  // otherwise devices are allocated, and the pod becomes a user
    bool doubtful = false;   // an earlier attempt sent this allocation, with an unknown result
    // The pod becomes a user beside others of its gang, one of which may still have to allocate;
    // until the claim is seen with this user.
    bool follows = false;
    bool joined = false;  // it was sent as a user
    // Set if the claim is to be created for extended resources: its requests by container.
    std::vector<dra::ExtendedClaim::Mapping> mappings{};
    bool creates() const { return !mappings.empty(); }
  };
  std::vector<Change> changes;
  // kProtected: claims exist and have the finalizer, or it is being written. kWritten: the same for
  // allocations.
  enum class Stage { kNew, kProtected, kWritten } stage = Stage::kNew;
  std::optional<Time> until;  // for binding conditions
};

// The next step. kWaits without writes: the devices are being prepared (binding conditions).
// `versions` may be null.
Progress CheckClaims(AssumedClaims& assumed, const cluster::Pod& pod,
                     const cluster::ClusterContext& context, const WrittenVersions* versions,
                     Time now, Duration patience);

// The path of StatusWrite.
std::string StatusPathOf(const dra::ResourceClaim& claim);

// Stores the allocation and the user, if the claim has this version; "": any.
codec::ApiRequest StatusWrite(const dra::ResourceClaim& claim, const std::string& version,
                              const dra::Allocation* allocation, const dra::ClaimConsumer& user);

// Why the devices of the allocation cannot be prepared: a failure condition is true. nullopt: none
// is.
std::optional<std::string> FailureOf(const dra::ResourceClaim& claim,
                                     const dra::Allocation& allocation);

// Why the devices of the allocation are not prepared yet: a binding condition is not true. nullopt:
// all are.
std::optional<std::string> MissingOf(const dra::ResourceClaim& claim,
                                     const dra::Allocation& allocation);
// The devices of which FailureOf or MissingOf (`missing`) is true.
std::vector<dra::DeviceId> UnpreparedOf(const dra::ResourceClaim& claim,
                                        const dra::Allocation& allocation, bool missing);

// Removes the pod from the users of a claim.
codec::ApiRequest ReleaseWrite(const dra::ResourceClaim& claim, const cluster::Pod& pod);

// Removes the allocation of a claim that no other pod uses.
codec::ApiRequest ClearWrite(const dra::ResourceClaim& claim);

// The writes that delete a claim that was created for extended resources, if no other client has
// changed it: the first removes the finalizer, the second the claim.
std::vector<codec::ApiRequest> DeleteWrites(const dra::ResourceClaim& claim);

}  // namespace nos::scheduling
