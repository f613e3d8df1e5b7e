// Finds the cheapest way to take one slice on a GPU and caches it, so that the search changes
// states by array reads.
//
//   CheapestSteps steps(problem, table, potential);
//   const Step step = steps.Of(id, slice);
//   if (step.possible) id = step.next;
//
// An existing free instance comes first; else a new one that destroys the fewest free instances and
// then keeps most potential.
//
// The constructor's arguments must outlive it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planning/model/gpu_potential.h"
#include "planning/model/gpu_state_table.h"

namespace nos::planning {

class CheapestSteps {
 public:
  CheapestSteps(const Problem& problem, GpuStateTable& table, GpuPotential& potential)
      : problem_(problem), table_(table), potential_(potential) {}

  // May add a state to the table.
  Step Of(GpuStateId id, uint16_t slice) {
    const size_t at = id * problem_.slices.size() + slice;
    if (at < steps_.size() && known_[at]) return steps_[at];
    return FindAt(at, id, slice);
  }

 private:
  Step FindAt(size_t at, GpuStateId id, uint16_t slice);
  Step Find(GpuStateId id, uint16_t slice);
  // On the current model of the GPU.
  Step FindOn(const GpuState& state, uint16_t slice);
  Step FindInstance(const GpuState& state, gpu::ProfileId profile);
  Step FindShare(const GpuState& state, gpu::ProfileId profile);

  const Problem& problem_;
  GpuStateTable& table_;
  GpuPotential& potential_;
  std::vector<Step> steps_;  // state x slice
  std::vector<bool> known_;  // state x slice
};

}  // namespace nos::planning
