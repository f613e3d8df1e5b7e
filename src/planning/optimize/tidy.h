// The same pods with fewer changes: free instances reused or left alone, few GPUs and nodes
// touched.
#pragma once

#include <functional>

#include "planning/model/draft.h"

namespace nos::planning {

// A draft (Draft::Free::kKeep) that places exactly as many pods of every class as `best` does.
// `best` may ignore free instances. Sets `complete` to false when out_of_time cut it short. When
// `give_up` says true, every pod stays on its node.
Draft Tidy(const Draft& best, const std::function<bool()>& out_of_time,
           const std::function<bool()>& give_up, bool* complete);

}  // namespace nos::planning
