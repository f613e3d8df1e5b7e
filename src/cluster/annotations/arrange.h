// Places instances of which only the number is known. Internal to this library.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/catalogue.h"
#include "gpu/occupancy.h"

namespace nos::cluster {

using ProfileCounts = std::vector<int>;  // by gpu::ProfileId

// Sorted legal placements with exactly these instances, including `kept`; nullopt if no arrangement
// is legal. Deterministic. MIG: large profiles get the lowest starts, and the search visits every
// layout of the model at most once. Shares: the lowest numbers, preferably none that is `avoided`
// (bit i: number i).
std::optional<std::vector<gpu::Placement>> Arrange(const gpu::Model& model, ProfileCounts counts,
                                                   std::span<const gpu::Placement> kept = {},
                                                   uint64_t avoided = 0);

// The sorted placements of a layout. REQUIRES: the model has layouts.
std::vector<gpu::Placement> PlacementsOf(const gpu::Model& model, gpu::LayoutId layout);

// Occupancy by all placements. nullopt if they overlap.
std::optional<gpu::Occupancy> OccupancyOf(const gpu::Model& model,
                                          std::span<const gpu::Placement> placements);

}  // namespace nos::cluster
