#include "cluster/annotations/arrange.h"

#include <algorithm>
#include <bit>

namespace nos::cluster {
namespace {

using gpu::LayoutId;
using gpu::LayoutTable;
using gpu::Placement;
using gpu::PlacementId;
using gpu::ProfileId;

class Search {
 public:
  explicit Search(const gpu::Model& model) : table_(model.layouts()), seen_(table_.size()) {
    for (size_t i = 0; i < model.profiles().size(); ++i) {
      largest_first_.push_back(static_cast<ProfileId>(i));
    }
    std::stable_sort(largest_first_.begin(), largest_first_.end(), [&](ProfileId a, ProfileId b) {
      return model.profile(a).slots > model.profile(b).slots;
    });
  }

  // Adds the instances in `missing` to `layout`. Depth-first search that visits each layout at most
  // once.
  std::optional<LayoutId> Complete(LayoutId layout, ProfileCounts& missing) {
    if (seen_[layout]) return std::nullopt;
    seen_[layout] = true;
    const auto next = std::find_if(largest_first_.begin(), largest_first_.end(),
                                   [&](ProfileId profile) { return missing[profile] > 0; });
    if (next == largest_first_.end()) return layout;
    if (table_.Copies(layout, *next) < missing[*next]) return std::nullopt;
    --missing[*next];
    std::optional<LayoutId> found;
    uint64_t choices = table_.Addable(layout) & table_.PlacementsOf(*next);
    for (; choices != 0 && !found; choices &= choices - 1) {
      const auto placement = static_cast<PlacementId>(std::countr_zero(choices));
      found = Complete(table_.Add(layout, placement), missing);
    }
    ++missing[*next];
    return found;
  }

 private:
  const LayoutTable& table_;
  std::vector<bool> seen_;
  std::vector<ProfileId> largest_first_;
};

std::optional<std::vector<Placement>> AddShares(gpu::Occupancy on, const ProfileCounts& missing,
                                                std::vector<Placement> placements,
                                                uint64_t avoided) {
  for (size_t profile = 0; profile < missing.size(); ++profile) {
    for (int n = 0; n < missing[profile]; ++n) {
      const Placement beside{static_cast<ProfileId>(profile),
                             static_cast<uint8_t>(std::countr_one(on.starts() | avoided))};
      if (on.Add(beside)) {
        placements.push_back(beside);
        continue;
      }
      const auto place = on.FirstPlace(beside.profile);
      if (!place) return std::nullopt;
      on.Add(*place);
      placements.push_back(*place);
    }
  }
  std::ranges::sort(placements);
  return placements;
}

}  // namespace

std::vector<Placement> PlacementsOf(const gpu::Model& model, LayoutId layout) {
  std::vector<Placement> placements;
  const LayoutTable& table = model.layouts();
  for (uint64_t members = table.Members(layout); members != 0; members &= members - 1) {
    placements.push_back(table.placements()[static_cast<size_t>(std::countr_zero(members))]);
  }
  return placements;
}

std::optional<gpu::Occupancy> OccupancyOf(const gpu::Model& model,
                                          std::span<const Placement> placements) {
  gpu::Occupancy on(model);
  for (const Placement& placement : placements) {
    if (!on.Add(placement)) return std::nullopt;
  }
  return on;
}

std::optional<std::vector<Placement>> Arrange(const gpu::Model& model, ProfileCounts counts,
                                              std::span<const Placement> kept, uint64_t avoided) {
  const auto on = OccupancyOf(model, kept);
  if (!on) return std::nullopt;
  for (const Placement& placement : kept) --counts[placement.profile];
  if (std::ranges::any_of(counts, [](int n) { return n < 0; })) return std::nullopt;
  if (model.counted()) return AddShares(*on, counts, {kept.begin(), kept.end()}, avoided);
  const auto layout = Search(model).Complete(on->layout(), counts);
  if (!layout) return std::nullopt;
  return PlacementsOf(model, *layout);
}

}  // namespace nos::cluster
