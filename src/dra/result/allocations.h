// The values of status.allocation of claims, for the devices that a search has chosen.
#pragma once

#include <vector>

#include "dra/allocation/draft.h"
#include "dra/objects.h"

namespace nos::dra {

// One allocation for each claim. Picks are in the order of claims and requests.
std::vector<Allocation> ResultOf(const NodeView& view, const std::vector<Pick>& picks,
                                 const std::vector<PreparedClaim>& claims,
                                 const Features& features);

}  // namespace nos::dra
