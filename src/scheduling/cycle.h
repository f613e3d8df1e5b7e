// Result of the pre-filters for one pod (Framework::PreFilter).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling {

// Result of all pre-filters for one pod.
struct Cycle {
  CycleState state;
  Verdict verdict;                             // does not fit: no node can run the pod
  std::optional<std::set<std::string>> nodes;  // the only candidates
  Verdict elsewhere;                           // verdict on nodes outside `nodes`
  std::vector<const FilterPlugin*> filters;    // filters that may refuse the pod
  const Plugin* by = nullptr;                  // the plugin that gave `verdict` or `elsewhere`
};

}  // namespace nos::scheduling
