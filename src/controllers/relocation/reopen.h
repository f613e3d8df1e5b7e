// Uncordons nodes that pods have left for a pending pod, when the relocation is over. Until then a
// successor could return and take the freed capacity.
//
//   ReopenNodes(view, client, now, config.successor_timeout, scene, memory, outcome);
#pragma once

#include "controllers/relocation/memory.h"
#include "controllers/relocation/outcome.h"
#include "controllers/relocation/scene.h"

namespace nos::controllers {

// A node stays cordoned for at most `successor_timeout` after its relocation is over. Records in
// `memory` when a relocation was last seen and since when it is over; in `outcome` the
// errors, and when the next node may be uncordoned.
void ReopenNodes(const reconcile::Listers& view, kube::Client& client, Time now,
                 Duration successor_timeout, const MovingScene& scene, RelocationMemories& memory,
                 StepOutcome& outcome);

}  // namespace nos::controllers
