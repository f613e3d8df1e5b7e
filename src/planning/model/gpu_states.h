// Everything that one search learns about GPUs: their states, the best next step for each kind of
// slice, and what fits on a GPU or on a node.
//
//   GpuStates states(problem);
//   GpuStateId s = states.Start(problem.gpus[0], false);
//   const Step step = states.Next(s, slice);
//   if (step.possible) s = step.next;
//
// Each question has a collaborator with a cache of its own. The caches grow with use: one GpuStates
// per search, not shared between threads. The problem must outlive it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "planning/model/arrangements.h"
#include "planning/model/cheapest_steps.h"
#include "planning/model/gpu_potential.h"
#include "planning/model/gpu_state_table.h"
#include "planning/model/maximal_sets.h"
#include "planning/model/node_packings.h"
#include "scheduling/packing/node_value.h"

namespace nos::planning {

class GpuStates {
 public:
  explicit GpuStates(const Problem& problem);
  GpuStates(const GpuStates&) = delete;
  GpuStates& operator=(const GpuStates&) = delete;

  // The states and how takings change them; see GpuStateTable.
  GpuStateId Intern(const GpuState& state) { return table_.Intern(state); }
  const GpuState& Get(GpuStateId id) const { return table_.Get(id); }
  GpuStateId Start(const ProblemGpu& gpu, bool empty) { return table_.Start(gpu, empty); }
  GpuStateId After(GpuStateId id, std::span<const Taking> takings) {
    return table_.After(id, takings);
  }
  int Destroyed(GpuStateId before, GpuStateId after, int created) const {
    return table_.Destroyed(before, after, created);
  }
  bool IsCounted(uint16_t model) const { return table_.IsCounted(model); }
  bool MayBeShared(GpuStateId id) const { return table_.MayBeShared(id); }
  const gpu::LayoutTable& Layouts(uint16_t model) const { return table_.Layouts(model); }
  const GpuStateTable& table() const { return table_; }

  // Potential lost between a state and a later one.
  int Lost(const GpuState& before, const GpuState& after) { return potential_.Lost(before, after); }
  // The cheapest way to take one slice; see CheapestSteps.
  Step Next(GpuStateId id, uint16_t slice) { return steps_.Of(id, slice); }
  // The best placements of these slices on one GPU; see Arrangements.
  const std::optional<Arrangement>& Arrange(GpuStateId id, const Counts& counts) {
    return arrangements_.Of(id, counts);
  }
  // All maximal sets of slices that can be added to one GPU.
  MaximalSets& sets() { return sets_; }
  // The slices that fit together on a node.
  NodePackings& packings() { return packings_; }
  // Number of each slice on each of these GPUs, as NodePackings::Pack. Counts the work and ends by
  // StopWhen.
  const std::optional<std::vector<Counts>>* Pack(int gpus, int slices);
  // Ranks nodes for pods without slices (packing_cost.h). It is a cache, too, hence a member.
  scheduling::packing::NodeValue& node_value() { return node_value_; }

  // Packing polls `stop` and gives up when it returns true. By default it never stops.
  void StopWhen(std::function<bool()> stop) { stop_ = std::move(stop); }
  const std::function<bool()>& stop() const { return stop_; }
  // Number of steps of about 20 ns spent on searching places, as a measure without a clock.
  int64_t work() const { return work_; }
  void AddWork(int64_t steps) { work_ += steps; }

 private:
  GpuStateTable table_;
  GpuPotential potential_;
  CheapestSteps steps_;
  MaximalSets sets_;
  Arrangements arrangements_;
  NodePackings packings_;
  scheduling::packing::NodeValue node_value_;
  std::function<bool()> stop_ = [] { return false; };
  int64_t work_ = 0;
};

}  // namespace nos::planning
