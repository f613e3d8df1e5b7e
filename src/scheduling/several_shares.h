// Several MPS shares, of GPUs or of MIG instances, in one container: its programs reach the daemon
// of one GPU or instance only, and nobody can say that they shall lie on one
// (agent/mps_grant.h). So nos sees to none that asks for them.
#pragma once

#include <string_view>

#include "cluster/objects.h"

namespace nos::scheduling {

// Whether some container asks for more than one, of one size or of several.
bool AsksForSeveralShares(const cluster::Pod& pod);

inline constexpr std::string_view kSeveralShares =
    "asks for several MPS shares in one container, whose programs reach one GPU, or one MIG "
    "instance, only: ask for one larger share, or for one in each of several containers";

}  // namespace nos::scheduling
