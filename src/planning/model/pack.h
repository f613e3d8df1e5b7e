// Decides exactly whether slices fit together on the GPUs of a node.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "planning/model/maximal_sets.h"

namespace nos::planning {

struct Packed {
  bool known = true;  // false: stopped early, or too many shares of too many sizes
  // Number of each slice on each GPU, in the order of `gpus`; nullopt if they do not fit together.
  std::optional<std::vector<Counts>> counts;
};

// Uses dynamic programming over the slices left to serve. If that is too large, an integer program
// decides how many GPUs in each state take which maximal set. `stop` is polled about ten thousand
// times a second; true: give up.
Packed PackSlices(MaximalSets& sets, std::span<const GpuStateId> gpus,
                  std::span<const SliceCount> need, size_t slices,
                  const std::function<bool()>& stop);

}  // namespace nos::planning
