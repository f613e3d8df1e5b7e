// Lists what a GPU can serve in addition: the maximal sets of slices, and upper limits of them.
//
//   MaximalSets sets(problem, table);
//   const std::vector<Counts>* all = sets.Of(id);   // {{7, 0}, {3, 1}, {0, 2}}: by slice
//   sets.MostOn(id).each;                           // {7, 2}
//
// No set contains another. An answer is computed once for each state and stays valid.
//
// The constructor's arguments must outlive it. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "planning/model/gpu_state_table.h"

namespace nos::planning {

class MaximalSets {
 public:
  MaximalSets(const Problem& problem, const GpuStateTable& table);

  // For shares, counts are limited to the total that pods request. Null: too many sets; only
  // possible with shares.
  const std::vector<Counts>* Of(GpuStateId id);
  // The same with at most `most` shares of each slice (by slice).
  std::optional<std::vector<Counts>> Within(GpuStateId id, std::span<const int> most);
  // True if Of and Within may differ.
  bool MayBeShared(GpuStateId id) const { return table_.MayBeShared(id); }
  // Upper limits of what can be added to a GPU.
  const MostOnGpu& MostOn(GpuStateId id);
  // The total size and compute of some slices.
  MostOnGpu WorthOf(std::span<const SliceCount> slices) const;

 private:
  std::optional<std::vector<Counts>> OnModel(const GpuState& state, std::span<const int> most);
  // REQUIRES: the model is not counted().
  const std::vector<Counts>& OfLayout(const GpuState& state);
  std::vector<Counts> FindOfLayout(const GpuState& state) const;
  void AddMostShares(const GpuState& state, MostOnGpu& most) const;
  void AddMostOf(const std::vector<Counts>& sets, MostOnGpu& most) const;

  const Problem& problem_;
  const GpuStateTable& table_;
  std::vector<int> asked_;  // by slice: total that pods request
  // By state; unset: not computed yet, nullopt: too many sets.
  std::deque<std::optional<std::optional<std::vector<Counts>>>> by_state_;
  // By model, occupied layout and usable placements; free instances and the other model make no
  // difference.
  std::map<std::tuple<uint16_t, gpu::LayoutId, uint64_t>, std::vector<Counts>> by_layout_;
  std::deque<MostOnGpu> most_;  // by state; an empty `each`: not computed yet
};

}  // namespace nos::planning
