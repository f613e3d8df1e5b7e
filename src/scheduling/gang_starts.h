// Shared steps of all callers that place the members of a gang one by one: which members to retry,
// and in which domains to start.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "cluster/snapshot.h"
#include "scheduling/diagnosis.h"
#include "scheduling/gang_domains.h"

namespace nos::scheduling {

class Framework;

// Limit on the domains tried for one gang: each costs as much as a full decision on the gang.
inline constexpr int kMaxGangStarts = 16;

// Members without a node, with the reason.
using GangRefusals = std::vector<std::pair<std::shared_ptr<const cluster::Pod>, Diagnosis>>;

// Moves members that may fit after others are placed (MayFollow) out of `refusals`, in order.
std::vector<std::shared_ptr<const cluster::Pod>> TakeFollowers(GangRefusals& refusals);

struct GangStarts {
  std::vector<std::vector<size_t>> domains;  // node indices, as in GangTies::Domains
  std::set<const Plugin*> by;                // plugins that exclude members from other domains
};

// Returns the domains with a node that fits the first tied member. If that member fits nowhere, the
// next tied member is tried.
GangStarts StartsOf(std::span<const std::shared_ptr<const cluster::Pod>> members,
                    const GangTies& ties, const cluster::ClusterSnapshot& snapshot,
                    FunctionRef<const Framework&(const cluster::Pod&)> framework_for);

}  // namespace nos::scheduling
