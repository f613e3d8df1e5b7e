// Whether slices fit on the GPUs of a node together, exactly.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planning/model/gpu_states.h"

namespace nos::planning {

struct Packed {
  bool known = true;  // false: stopped before it was found out, or too many shares of many sizes
  // How many of each slice every GPU takes, in the order of `gpus`; none if they do not fit
  // together.
  std::optional<std::vector<Counts>> counts;
};

// By dynamic programming over what is left to serve, or, where that would be too much, by an
// integer program over how many GPUs in each state take which largest set. `stop` is asked some ten
// thousand times a second; true: give up.
Packed PackSlices(GpuStates& states, std::span<const GpuStateId> gpus,
                  std::span<const SliceCount> need, size_t slices,
                  const std::function<bool()>& stop);

}  // namespace nos::planning
