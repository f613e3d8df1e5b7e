// Reduces the changes of a plan without changing the number of pods: reuses or keeps free
// instances, touches few GPUs and nodes.
#pragma once

#include <functional>

#include "planning/model/draft.h"

namespace nos::planning {

// Returns a draft (Draft::Free::kKeep) that places exactly as many pods of every class as `best`.
// `best` may ignore free instances. Sets `complete` to false if out_of_time interrupted it. If
// `give_up` returns true, every pod stays on its node.
Draft Tidy(const Draft& best, const std::function<bool()>& out_of_time,
           const std::function<bool()>& give_up, bool* complete);

}  // namespace nos::planning
