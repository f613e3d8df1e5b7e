// Numbers the states that a GPU can have during planning and caches the best next step for each
// kind of slice, so that the search changes states by array reads.
//
//   GpuStates states(problem);
//   GpuStateId s = states.Intern({model, used, free, usable});
//   Step step = states.Next(s, slice);
//   if (step.possible) s = step.next;
//
// A cache that grows with use: one per search, not shared between threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planning/model/problem.h"
#include "planning/model/share_states.h"
#include "scheduling/packing/node_value.h"

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
  uint16_t other = kNoModel;  // may switch to this model; then nothing is used or planned
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

class GpuStates {
 public:
  // The problem must outlive it.
  explicit GpuStates(const Problem& problem);

  GpuStateId Intern(const GpuState& state);
  const GpuState& Get(GpuStateId id) const { return states_[id]; }
  // The state of the GPU before anything is planned. `empty`: free instances count as empty space.
  GpuStateId Start(const ProblemGpu& gpu, bool empty);
  // The state after these takings, in any order.
  GpuStateId After(GpuStateId id, std::span<const Taking> takings);
  // Number of free instances of `before` that `after` has neither kept nor assigned. `created`:
  // number of instances created between the two.
  int Destroyed(GpuStateId before, GpuStateId after, int created) const;
  int TakenSlots(GpuStateId id) const;
  bool IsCounted(uint16_t model) const { return problem_.models[model]->counted(); }
  // True if the GPU has shares, or may switch to shares.
  bool MayBeShared(GpuStateId id) const {
    const GpuState& state = states_[id];
    return IsCounted(state.model) || (state.other != kNoModel && IsCounted(state.other));
  }
  // The model of the GPU that serves the slice; kNoModel if none does.
  uint16_t ModelFor(const GpuState& state, uint16_t slice) const;
  // Maximum number of instances in either model.
  int MostInstances(const GpuState& state) const;
  // The state once for each of its models, without the option to switch; the current model comes
  // first.
  std::vector<GpuState> SharingModesOf(const GpuState& state) const;
  // Potential lost between a state and a later one.
  int Lost(const GpuState& before, const GpuState& after);
  Step Next(GpuStateId id, uint16_t slice);
  // All maximal sets of slices that can be added: no set contains another. For shares, counts are
  // limited to the total that pods request. Null: too many sets; only possible with shares.
  const std::vector<Counts>* MaximalSets(GpuStateId id);
  // The same with at most `most` shares of each slice (by slice).
  std::optional<std::vector<Counts>> MaximalSetsWithin(GpuStateId id, std::span<const int> most);
  // The placement of these slices with fewest changes, then most remaining potential. nullopt if
  // they do not fit together.
  const std::optional<Arrangement>& Arrange(GpuStateId id, const Counts& counts);
  // Ids for recurring keys: the GPUs of a node, whatever their order, and the slices that a pod
  // requests. `gpus`: sorted.
  int InternGpus(const std::vector<GpuStateId>& gpus);
  int InternSlices(const std::vector<SliceCount>& slices);
  // Points to true if these slices fit on these GPUs; null: not known yet.
  const bool* Fits(int gpus, int slices) const;
  void Remember(int gpus, int slices, bool fits);
  // Number of each slice on each of these GPUs (pack.h); null: stopped before the result was known.
  const std::optional<std::vector<Counts>>* Pack(int gpus, int slices);
  // The total size and compute of some slices; and upper limits of what can be added to a GPU.
  MostOnGpu WorthOf(std::span<const SliceCount> slices) const;
  const MostOnGpu& MostOn(GpuStateId id);
  // Packing polls `stop` and gives up when it returns true. By default it never stops.
  void StopWhen(std::function<bool()> stop) { stop_ = std::move(stop); }
  const std::function<bool()>& stop() const { return stop_; }
  // Number of steps of about 20 ns spent on searching places, as a measure without a clock.
  int64_t work() const { return work_; }
  void AddWork(int64_t steps) { work_ += steps; }
  // The potential of a GPU with this layout as gpu/fragmentation.h defines it, with a much higher
  // weight for the slices that pods request now.
  int Potential(uint16_t model, gpu::LayoutId layout);
  // Ranks nodes for pods without slices (packing_cost.h). It is a cache, too, hence a member.
  scheduling::packing::NodeValue& node_value() { return node_value_; }
  // REQUIRES: the model is not counted().
  const gpu::LayoutTable& Table(uint16_t model) const { return problem_.models[model]->layouts(); }
  // For a counted() model: the profiles of the free shares in a state.
  const std::vector<gpu::ProfileId>& FreeSharesOf(const GpuState& state) const {
    return shares_.Get(state.free);
  }

 private:
  struct Hash {
    size_t operator()(const GpuState& s) const;
  };
  // The free instances that can be kept beside this layout.
  uint64_t KeptFree(uint16_t model, gpu::LayoutId occupied, uint64_t free);
  // The same GPU, switched to its other model and empty.
  GpuState Switched(const GpuState& state) const;
  int FreeInstances(const GpuState& state) const;
  std::optional<std::vector<Counts>> MaximalSetsOf(const GpuState& state,
                                                   std::span<const int> most);
  void AddMostShares(const GpuState& state, MostOnGpu& most);
  void AddMostOf(const std::vector<Counts>& sets, MostOnGpu& most) const;
  GpuState AfterAll(GpuState state, std::span<const Taking> takings);
  Step FindStep(GpuStateId id, uint16_t slice);
  Step FindStepIn(const GpuState& state, uint16_t slice);
  Step FindShareStep(const GpuState& state, gpu::ProfileId profile);
  // REQUIRES: the model is not counted().
  const std::vector<Counts>& LayoutSets(const GpuState& state);
  std::vector<Counts> FindMaximalSets(const GpuState& state) const;
  GpuState AfterShares(GpuState state, std::span<const Taking> takings);
  std::optional<Arrangement> ArrangeShares(const GpuState& state, const Counts& counts);
  void LearnWeights(const gpu::Model& model, size_t index);

  const Problem& problem_;
  scheduling::packing::NodeValue node_value_;
  std::vector<GpuState> states_;
  std::unordered_map<GpuState, GpuStateId, Hash> ids_;
  std::vector<Step> steps_;        // state x slice
  std::vector<bool> steps_known_;  // state x slice
  // By state; unset: not computed yet, nullopt: too many sets.
  std::vector<std::optional<std::optional<std::vector<Counts>>>> maximal_;
  // By model, occupied layout and usable placements; free instances and the other model make no
  // difference.
  std::map<std::tuple<uint16_t, gpu::LayoutId, uint64_t>, std::vector<Counts>> layout_sets_;
  std::vector<MostOnGpu> most_;  // by state; an empty `each`: not computed yet
  std::map<std::pair<GpuStateId, Counts>, std::optional<Arrangement>> arrangements_;
  std::map<std::vector<GpuStateId>, int> gpus_ids_;
  std::vector<const std::vector<GpuStateId>*> gpus_;
  std::map<std::vector<SliceCount>, int> slices_ids_;
  std::vector<const std::vector<SliceCount>*> slices_;
  // By GPU list id and slice list id.
  std::unordered_map<uint64_t, bool> fits_;
  std::unordered_map<uint64_t, std::optional<std::vector<Counts>>> packings_;
  FreeShares shares_;
  std::vector<int> asked_;                            // by slice: total that pods request
  std::vector<std::vector<int>> potential_;           // model x layout; -1: not computed yet
  std::vector<std::vector<int>> weight_;              // model x profile
  std::vector<std::vector<gpu::ProfileId>> weighty_;  // by model: profiles with a weight above zero
  std::function<bool()> stop_ = [] { return false; };
  int64_t work_ = 0;
};

}  // namespace nos::planning
