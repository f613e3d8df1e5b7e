// Finds places for instances of which only the number is known. Internal to this room.
#pragma once

#include <optional>
#include <vector>

#include "gpu/catalogue.h"

namespace nos::cluster {

using ProfileCounts = std::vector<int>;  // by gpu::ProfileId

// A legal layout with exactly these instances, `kept` among them; nothing when there is none. Large
// profiles get the lowest starts. Deterministic; visits every layout of the model at most once.
std::optional<gpu::LayoutId> Arrange(const gpu::Model& model, ProfileCounts counts,
                                     gpu::LayoutId kept = gpu::LayoutTable::kEmpty);

// The placements of a layout, sorted.
std::vector<gpu::Placement> PlacementsOf(const gpu::Model& model, gpu::LayoutId layout);

}  // namespace nos::cluster
