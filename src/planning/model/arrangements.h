// Chooses the placements for a set of slices on one GPU.
//
//   Arrangements arrangements(problem, table, potential);
//   if (const auto& found = arrangements.Of(id, {2, 1})) id = table.After(id, found->takings);
//
// Fewest changes come first, then most remaining potential. An answer is computed once and stays
// valid.
//
// The constructor's arguments must outlive it. Not thread-safe.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "planning/model/gpu_potential.h"
#include "planning/model/gpu_state_table.h"

namespace nos::planning {

class Arrangements {
 public:
  Arrangements(const Problem& problem, GpuStateTable& table, GpuPotential& potential)
      : problem_(problem), table_(table), potential_(potential) {}

  // nullopt: the slices do not fit together.
  const std::optional<Arrangement>& Of(GpuStateId id, const Counts& counts);

 private:
  std::optional<Arrangement> Find(GpuStateId id, const Counts& counts);
  std::optional<Arrangement> FindShares(const GpuState& start, const Counts& counts);

  const Problem& problem_;
  GpuStateTable& table_;
  GpuPotential& potential_;
  std::map<std::pair<GpuStateId, Counts>, std::optional<Arrangement>> known_;
};

}  // namespace nos::planning
