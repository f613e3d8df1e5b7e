// Where a gang may begin whose members have to be near each other. Where the first of them goes
// decides for the others, so whoever places them one by one has to try each topology domain.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "cluster/snapshot.h"

namespace nos::scheduling {

// Whether some of the members have to be near members (required affinity), be it themselves.
bool HaveToBeNear(std::span<const std::shared_ptr<const cluster::Pod>> members);

// Whether the member is one of those, or one that they have to be near.
bool IsTied(const cluster::Pod& member,
            std::span<const std::shared_ptr<const cluster::Pod>> members);

// The nodes, by index, of each domain of the topology keys by which members have to be near members
// (required affinity), the largest domains first. Nodes that lack one of the keys are in none.
// Empty when nobody has to be near another one.
std::vector<std::vector<size_t>> GangDomains(
    std::span<const std::shared_ptr<const cluster::Pod>> members,
    std::span<const cluster::NodeInfo* const> nodes);

}  // namespace nos::scheduling
