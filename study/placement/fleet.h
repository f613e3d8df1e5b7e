// Many GPUs of one model, grouped by layout. Finds the placement with the least loss among all
// GPUs, at a cost that depends on the number of layouts instead of GPUs.
//
//   Fleet fleet(rule, 5000);
//   if (auto spot = fleet.Choose(profile)) fleet.Set(spot->gpu, table.Add(fleet.layout(spot->gpu),
//                                                                        spot->placement));
//
// A GPU is identified by its index. Among equal GPUs the choice is arbitrary but deterministic. Not
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "gpu/fragmentation.h"
#include "gpu/layout.h"

namespace nos::study {

struct Spot {
  uint32_t gpu = 0;
  gpu::PlacementId placement = 0;
  friend bool operator==(const Spot&, const Spot&) = default;
};

class Fleet {
 public:
  // All GPUs start empty. `rule` must outlive the fleet.
  Fleet(const gpu::Fragmentation& rule, size_t gpus);

  const gpu::Fragmentation& rule() const { return *rule_; }
  gpu::LayoutId layout(uint32_t gpu) const { return layout_[gpu]; }
  void Set(uint32_t gpu, gpu::LayoutId layout);

  // The spot with the least loss; ties: the fuller GPU, then the one with more instances. nullopt
  // if the profile fits nowhere.
  std::optional<Spot> Choose(gpu::ProfileId profile) const;

  // The GPUs grouped by layout, for searches. `index` counts the GPUs of one layout.
  size_t Count(gpu::LayoutId layout) const { return gpus_of_[layout].size(); }
  uint32_t Gpu(gpu::LayoutId layout, size_t index) const { return gpus_of_[layout][index]; }
  // Layouts of at least one GPU, ascending.
  const std::vector<gpu::LayoutId>& Present() const { return present_; }
  // The best layout for the profile with at least one GPU that is not reserved, or kIllegal.
  // `reserved` lists the layout of each reserved GPU.
  gpu::LayoutId BestLayout(gpu::ProfileId profile, std::span<const gpu::LayoutId> reserved) const;

 private:
  void Enter(uint32_t gpu, gpu::LayoutId layout);
  void Leave(uint32_t gpu);
  // Sets or clears the layout in every profile's order of preference.
  void Mark(gpu::LayoutId layout, bool present);

  const gpu::Fragmentation* rule_;
  std::vector<gpu::LayoutId> layout_;           // by GPU
  std::vector<uint32_t> index_;                 // by GPU: position in gpus_of_
  std::vector<std::vector<uint32_t>> gpus_of_;  // by layout
  std::vector<gpu::LayoutId> present_;          // sorted
  std::vector<std::vector<uint64_t>> ranks_;    // by profile: bit r: Preferred()[r] is present
};

}  // namespace nos::study
