// Which instances to move so that a blocked request fits: the lever that matters most once no GPU
// has room (at load .95 two moves for a blocked request win back most of what any packing could).
//
// A move costs its pod a restart: the instance is destroyed and made again elsewhere. So this is
// for workloads that allow it, and only after Fleet::Choose found nothing.
#pragma once

#include <optional>
#include <vector>

#include "study/placement/fleet.h"

namespace nos::study {

struct Move {
  Spot from, to;  // `to` may be on the same GPU
};

// Take every moved instance out, then put all of them and the request in: every GPU is legal then.
struct Relocation {
  Spot spot;  // for the request
  std::vector<Move> moves;
  int loss = 0;  // of potential, in sum over all GPUs touched
};

// Searched in this order: one move; two instances of one GPU; a chain in which the first moved
// instance takes the place of a second. Among the plans of the first kind that works, the one with
// the least loss; of a chain's second leg only the best way for each profile is tried. Nothing when
// none works. REQUIRES: max_moves is 0, 1 or 2. Cost grows with the number of distinct layouts.
std::optional<Relocation> FindRelocation(const Fleet& fleet, gpu::ProfileId profile, int max_moves);

}  // namespace nos::study
