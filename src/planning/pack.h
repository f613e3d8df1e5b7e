// Whether slices fit on the GPUs of a node together, exactly.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "planning/gpu_states.h"

namespace nos::planning {

// How many of each slice every GPU takes, in the order of `gpus`; none if they do not fit together.
// Also none when there are more than 65,536 ways to serve a part of `need`: such a pod is
// beyond what a node can hold.
std::optional<std::vector<Counts>> PackSlices(GpuStates& states, std::span<const GpuStateId> gpus,
                                              std::span<const SliceCount> need, size_t slices);

}  // namespace nos::planning
