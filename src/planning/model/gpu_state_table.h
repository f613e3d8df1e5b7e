// Numbers the states that GPUs can have during planning and computes how taking slices changes
// them.
//
//   GpuStateTable table(problem);
//   GpuStateId id = table.Start(problem.gpus[0], false);
//   id = table.After(id, takings);            // the instances of `takings` are in use now
//   table.Get(id).free;                       // existing instances that are left
//
// Equal states have equal ids. Ids count up from 0, so callers use them as indices. States are
// never removed.
//
// The problem must outlive it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "planning/model/gpu_state.h"
#include "planning/model/share_states.h"

namespace nos::planning {

class GpuStateTable {
 public:
  explicit GpuStateTable(const Problem& problem) : problem_(problem) {}

  GpuStateId Intern(const GpuState& state);
  // Valid until the next state is interned.
  const GpuState& Get(GpuStateId id) const { return states_[id]; }
  size_t size() const { return states_.size(); }

  // The state of the GPU before anything is planned. `empty`: free instances count as empty space.
  GpuStateId Start(const ProblemGpu& gpu, bool empty);
  // The state after these takings, in any order.
  GpuStateId After(GpuStateId id, std::span<const Taking> takings);
  // The same for takings on the current model.
  GpuState Take(GpuState state, std::span<const Taking> takings);
  // The free instances that can be kept beside this layout.
  uint64_t KeptFree(uint16_t model, gpu::LayoutId occupied, uint64_t free);
  // The same GPU, switched to its other model and empty. REQUIRES: it has another model.
  GpuState Switched(const GpuState& state) const;
  // The state once for each of its models, without the option to switch; the current model comes
  // first.
  std::vector<GpuState> SharingModesOf(const GpuState& state) const;

  // The model of the GPU that serves the slice; kNoModel if none does.
  uint16_t ModelFor(const GpuState& state, uint16_t slice) const;
  bool IsCounted(uint16_t model) const { return problem_.models[model]->counted(); }
  // True if the GPU has shares, or may switch to shares.
  bool MayBeShared(GpuStateId id) const {
    const GpuState& state = states_[id];
    return IsCounted(state.model) ||
           (state.alternative != kNoModel && IsCounted(state.alternative));
  }
  // REQUIRES: the model is not counted().
  const gpu::LayoutTable& Layouts(uint16_t model) const {
    return problem_.models[model]->layouts();
  }
  // For a counted() model: the profiles of the free shares in a state.
  const std::vector<gpu::ProfileId>& FreeSharesOf(const GpuState& state) const {
    return shares_.Get(state.free);
  }
  // For a counted() model: the lists behind GpuState::free.
  FreeShares& shares() { return shares_; }

  // Number of free instances of `before` that `after` has neither kept nor assigned. `created`:
  // number of instances created between the two.
  int Destroyed(GpuStateId before, GpuStateId after, int created) const;
  int TakenSlots(GpuStateId id) const;
  int FreeInstances(const GpuState& state) const;
  // Maximum number of instances in either model.
  int MostInstances(const GpuState& state) const;

 private:
  struct Hash {
    size_t operator()(const GpuState& s) const;
  };
  GpuState TakeShares(GpuState state, std::span<const Taking> takings);

  const Problem& problem_;
  std::vector<GpuState> states_;
  std::unordered_map<GpuState, GpuStateId, Hash> ids_;
  FreeShares shares_;
};

}  // namespace nos::planning
