// Chooses instances to move so that a blocked request fits. Moves help most when no GPU has
// capacity: at load 0.95, two moves per blocked request regain most of what a complete repacking
// could.
//
// A move restarts the pod: its instance is destroyed and created elsewhere. Therefore moves are
// only for workloads that allow it, after Fleet::Choose found nothing.
#pragma once

#include <optional>
#include <vector>

#include "study/placement/fleet.h"

namespace nos::study {

struct Move {
  Spot from, to;  // `to` may be on the same GPU
};

// First remove all moved instances, then place them and the request; the resulting layouts are
// legal.
struct Relocation {
  Spot spot;  // for the request
  std::vector<Move> moves;
  int loss = 0;  // of potential, summed over all changed GPUs
};

// Searches in this order: one move; two instances of one GPU; a chain in which the first moved
// instance takes the place of a second. Returns the plan with the least loss among those of the
// first kind that works. For the second move of a chain, only the best one per profile is tried.
// nullopt if no plan works. REQUIRES: max_moves is 0, 1 or 2. The cost grows with the number of
// distinct layouts.
std::optional<Relocation> FindRelocation(const Fleet& fleet, gpu::ProfileId profile, int max_moves);

}  // namespace nos::study
