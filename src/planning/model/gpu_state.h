// The state of one GPU during planning, and the results of questions about it.
//
//   GpuState state{.model = 0, .occupied = layout, .free = 0b11, .usable = ~uint64_t{0}};
//   GpuStateId id = table.Intern(state);  // gpu_state_table.h
//
// Plain values. A state is 32 bytes and is copied freely; an id is valid in the table that gave it.
#pragma once

#include <cstdint>
#include <vector>

#include "planning/model/problem.h"

namespace nos::planning {

using GpuStateId = uint32_t;
// Number of each slice, by slice index.
using Counts = std::vector<uint8_t>;

// For a counted() model `occupied`, `free` and `usable` are packed differently (share_states.h).
struct GpuState {
  uint16_t model = 0;
  gpu::LayoutId occupied = gpu::LayoutTable::kEmpty;  // used and planned instances
  uint64_t free = 0;                                  // existing free instances that are kept
  uint64_t usable = 0;                                // placements that may be used
  uint16_t alternative = kNoModel;  // may switch to this model; then nothing is used or planned
  friend bool operator==(const GpuState&, const GpuState&) = default;
};

// The cheapest way to take one slice on a GPU: an existing free instance if there is one, else a
// new one that destroys the fewest free instances and then keeps most potential.
struct Step {
  GpuStateId next = 0;
  int32_t loss = 0;  // of potential
  gpu::PlacementId placement = 0;
  uint8_t destroyed = 0;
  uint8_t free_slots = 0;  // after the step
  bool created = false;    // false: an existing instance
  bool possible = false;
};

// An instance assigned to a slice. For shares `placement` is the profile.
struct Taking {
  uint16_t slice = 0;
  gpu::PlacementId placement = 0;
  bool created = false;  // false: an existing instance
};

// A set of slices placed on one GPU.
struct Arrangement {
  std::vector<Taking> takings;
  int changes = 0;  // instances created and destroyed
};

// Upper limits for one GPU, each for the case that the GPU serves nothing else.
struct MostOnGpu {
  Counts each;  // by slice
  int64_t size = 0, compute = 0;
};

}  // namespace nos::planning
