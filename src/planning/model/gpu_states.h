// The states a GPU can be in while a plan is made, numbered, with the best next step for each kind
// of slice: the search then moves GPUs from number to number by array reads.
//
//   GpuStates states(problem);
//   GpuStateId s = states.Intern({model, used, free, usable});
//   Step step = states.Next(s, slice);
//   if (step.possible) s = step.next;
//
// A cache that grows while it is asked: one per search, not shared between threads.
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
// How many of each slice, by slice index.
using Counts = std::vector<uint8_t>;

// Of a model that is counted() the three are packed otherwise (share_states.h).
struct GpuState {
  uint16_t model = 0;
  gpu::LayoutId occupied = gpu::LayoutTable::kEmpty;  // used and planned instances
  uint64_t free = 0;                                  // existing free instances that are kept
  uint64_t usable = 0;                                // placements that may be taken
  uint16_t other = kNoModel;  // that it may have instead: nothing is used or planned then
  friend bool operator==(const GpuState&, const GpuState&) = default;
};

// Taking one slice on a GPU: an existing free instance if there is one, else a new one where fewest
// free instances are destroyed and then most potential is left.
struct Step {
  GpuStateId next = 0;
  int32_t loss = 0;  // of potential
  gpu::PlacementId placement = 0;
  uint8_t destroyed = 0;
  uint8_t free_slots = 0;  // afterwards
  bool created = false;    // false: an existing instance
  bool possible = false;
};

// An instance that a slice gets. Of shares the placement says which profile it has.
struct Taking {
  uint16_t slice = 0;
  gpu::PlacementId placement = 0;
  bool created = false;  // false: one that is there already
};

// Slices put on one GPU together.
struct Arrangement {
  std::vector<Taking> takings;
  int changes = 0;  // instances created and destroyed
};

// The most that one GPU can give, each counted as if nothing else did.
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
  // How the GPU is before anything is planned. `empty`: free instances count as empty space.
  GpuStateId Start(const ProblemGpu& gpu, bool empty);
  // What it becomes by these takings, in any order.
  GpuStateId After(GpuStateId id, std::span<const Taking> takings);
  // Of the free instances before, how many are gone afterwards without anybody having taken them.
  // `created`: how many instances were made between the two.
  int Destroyed(GpuStateId before, GpuStateId after, int created) const;
  int TakenSlots(GpuStateId id) const;
  bool IsCounted(uint16_t model) const { return problem_.models[model]->counted(); }
  // Whether it has shares, or may have.
  bool MayBeShared(GpuStateId id) const {
    const GpuState& state = states_[id];
    return IsCounted(state.model) || (state.other != kNoModel && IsCounted(state.other));
  }
  // Which of its models serves the slice; kNoModel: none.
  uint16_t ModelFor(const GpuState& state, uint16_t slice) const;
  // Most instances that it can hold, in either model.
  int MostInstances(const GpuState& state) const;
  // The state as each of its models, without the choice: the one that it has comes first.
  std::vector<GpuState> WaysOf(const GpuState& state) const;
  // What is lost of the potential from one state to a later one.
  int Lost(const GpuState& before, const GpuState& after);
  Step Next(GpuStateId id, uint16_t slice);
  // Every largest set of slices that can be added, in the sense that none contains another; of
  // shares no more than all pods ask for. Null: there are too many, of shares alone.
  const std::vector<Counts>* MaximalSets(GpuStateId id);
  // The same, of shares none beyond `most` (by slice).
  std::optional<std::vector<Counts>> MaximalSetsWithin(GpuStateId id, std::span<const int> most);
  // The arrangement of these slices with fewest changes, then most potential left; none if they
  // cannot lie on the GPU together.
  const std::optional<Arrangement>& Arrange(GpuStateId id, const Counts& counts);
  // Numbers for what repeats: the GPUs of a node, whatever their order, and what a pod asks for.
  // `gpus`: sorted.
  int InternGpus(const std::vector<GpuStateId>& gpus);
  int InternSlices(const std::vector<SliceCount>& slices);
  // Whether these GPUs have room for these slices, if that has been found out; null: not yet.
  const bool* Fits(int gpus, int slices) const;
  void Remember(int gpus, int slices, bool fits);
  // How many of each slice every one of these GPUs takes (pack.h); null: stopped before it was
  // known.
  const std::optional<std::vector<Counts>>* Pack(int gpus, int slices);
  // What some slices are worth, and at most those that can be added to a GPU.
  MostOnGpu WorthOf(std::span<const SliceCount> slices) const;
  const MostOnGpu& MostOn(GpuStateId id);
  // Packing asks this now and then and gives up when it says true. Never, unless told otherwise.
  void StopWhen(std::function<bool()> stop) { stop_ = std::move(stop); }
  const std::function<bool()>& stop() const { return stop_; }
  // Steps of some 20 ns that looking for places has taken, a measure without a clock.
  int64_t work() const { return work_; }
  void AddWork(int64_t steps) { work_ += steps; }
  // What a GPU with this layout is still good for, as gpu/fragmentation.h defines it, with the same
  // again many times over for the slices that pods ask for now.
  int Potential(uint16_t model, gpu::LayoutId layout);
  // Weighs nodes for pods without slices (packing_cost.h). Here because it, too, is a cache.
  scheduling::packing::NodeValue& node_value() { return node_value_; }
  // REQUIRES: the model is not counted().
  const gpu::LayoutTable& Table(uint16_t model) const { return problem_.models[model]->layouts(); }
  // Of a counted one: the profiles of the free shares that a state has.
  const std::vector<gpu::ProfileId>& FreeSharesOf(const GpuState& state) const {
    return shares_.Get(state.free);
  }

 private:
  struct Hash {
    size_t operator()(const GpuState& s) const;
  };
  // Those of the free instances that can stay beside this layout.
  uint64_t KeptFree(uint16_t model, gpu::LayoutId occupied, uint64_t free);
  // As the other model, empty.
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
  // Of a model that is not counted().
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
  // By state; unset: not asked yet, none: there are too many.
  std::vector<std::optional<std::optional<std::vector<Counts>>>> maximal_;
  // By model, what is occupied and what is usable: free instances make no difference, nor what else
  // the GPU may be.
  std::map<std::tuple<uint16_t, gpu::LayoutId, uint64_t>, std::vector<Counts>> layout_sets_;
  std::vector<MostOnGpu> most_;  // by state; each is empty: not asked yet
  std::map<std::pair<GpuStateId, Counts>, std::optional<Arrangement>> arrangements_;
  std::map<std::vector<GpuStateId>, int> gpus_ids_;
  std::vector<const std::vector<GpuStateId>*> gpus_;
  std::map<std::vector<SliceCount>, int> slices_ids_;
  std::vector<const std::vector<SliceCount>*> slices_;
  // By both numbers.
  std::unordered_map<uint64_t, bool> fits_;
  std::unordered_map<uint64_t, std::optional<std::vector<Counts>>> packings_;
  FreeShares shares_;
  std::vector<int> asked_;                            // by slice: by all pods together
  std::vector<std::vector<int>> potential_;           // model x layout; -1: not asked yet
  std::vector<std::vector<int>> weight_;              // model x profile
  std::vector<std::vector<gpu::ProfileId>> weighty_;  // by model: those that weigh anything
  std::function<bool()> stop_ = [] { return false; };
  int64_t work_ = 0;
};

}  // namespace nos::planning
