// Finds places for instances of which only the number is known. Internal to this room.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/catalogue.h"
#include "gpu/occupancy.h"

namespace nos::cluster {

using ProfileCounts = std::vector<int>;  // by gpu::ProfileId

// Legal placements with exactly these instances, `kept` among them, sorted; nothing when there are
// none. MIG: large profiles get the lowest starts, and every layout of the model is visited at most
// once; shares get the lowest numbers, of those that are not `avoided` (bit i: number i) while
// there are such. Deterministic.
std::optional<std::vector<gpu::Placement>> Arrange(const gpu::Model& model, ProfileCounts counts,
                                                   std::span<const gpu::Placement> kept = {},
                                                   uint64_t avoided = 0);

// The placements of a layout, sorted. REQUIRES: the model has layouts.
std::vector<gpu::Placement> PlacementsOf(const gpu::Model& model, gpu::LayoutId layout);

// All of them as they lie. Nothing: they may not lie together.
std::optional<gpu::Occupancy> OccupancyOf(const gpu::Model& model,
                                          std::span<const gpu::Placement> placements);

}  // namespace nos::cluster
