#include "cluster/arrange.h"

#include <algorithm>
#include <bit>

namespace nos::cluster {
namespace {

using gpu::LayoutId;
using gpu::LayoutTable;
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

  // Adds what `missing` still names to `layout`.
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

}  // namespace

std::optional<LayoutId> Arrange(const gpu::Model& model, ProfileCounts counts, LayoutId kept) {
  for (const gpu::Placement& placement : PlacementsOf(model, kept)) --counts[placement.profile];
  const bool covered = std::all_of(counts.begin(), counts.end(), [](int n) { return n >= 0; });
  if (!covered) return std::nullopt;
  return Search(model).Complete(kept, counts);
}

std::vector<gpu::Placement> PlacementsOf(const gpu::Model& model, LayoutId layout) {
  std::vector<gpu::Placement> placements;
  const LayoutTable& table = model.layouts();
  for (uint64_t members = table.Members(layout); members != 0; members &= members - 1) {
    placements.push_back(table.placements()[static_cast<size_t>(std::countr_zero(members))]);
  }
  return placements;
}

}  // namespace nos::cluster
