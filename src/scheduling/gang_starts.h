// What all who place the members of a gang one by one have in common: whom they try again, and
// where they begin anew when members have to be near each other.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "cluster/snapshot.h"
#include "scheduling/framework.h"
#include "scheduling/gang_domains.h"

namespace nos::scheduling {

// Domains in which a gang is tried at most: each costs as much as to decide on the gang.
inline constexpr int kMostGangStarts = 16;

// Members without a node, and why.
using GangRefusals = std::vector<std::pair<std::shared_ptr<const cluster::Pod>, Diagnosis>>;

// Takes those out who may follow others (MayFollow), in their order.
std::vector<std::shared_ptr<const cluster::Pod>> TakeFollowers(GangRefusals& refusals);

struct GangStarts {
  std::vector<std::vector<size_t>> domains;  // nodes by index, as GangTies has them
  std::set<const Plugin*> by;                // who keeps members out of others
};

// The domains in which members can begin: with a node that fits the first tied member that fits any
// of them.
GangStarts StartsOf(std::span<const std::shared_ptr<const cluster::Pod>> members,
                    const GangTies& ties, const cluster::ClusterSnapshot& snapshot,
                    FunctionRef<const Framework&(const cluster::Pod&)> framework_for);

}  // namespace nos::scheduling
