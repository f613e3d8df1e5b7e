#include "planning/model/arrangements.h"

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

namespace nos::planning {
namespace {

uint64_t Bit(int placement) { return uint64_t{1} << placement; }

// Tries all placements of the slices on the GPU. Equal slices are tried in increasing order of
// placement only.
class Arranger {
 public:
  Arranger(GpuStateTable& states, GpuPotential& potential, const Problem& problem,
           const GpuState& start)
      : states_(states),
        potential_(potential),
        problem_(problem),
        start_(start),
        layouts_(states.Layouts(start.model)) {}

  std::optional<Arrangement> Find(const Counts& counts) {
    left_ = counts;
    Descend(0, 0, start_.occupied);
    return best_;
  }

 private:
  void Descend(size_t slice, int from, gpu::LayoutId layout) {
    while (slice < left_.size() && left_[slice] == 0) {
      ++slice;
      from = 0;
    }
    if (slice == left_.size()) return Consider(layout);
    const gpu::ProfileId profile = problem_.slices[slice].profile[start_.model];
    if (profile == kNoProfile) return;
    const uint64_t can = layouts_.PlacementsOf(profile) & start_.usable & layouts_.Addable(layout) &
                         (~uint64_t{0} << from);
    --left_[slice];
    for (uint64_t rest = can; rest != 0; rest &= rest - 1) {
      const int placement = std::countr_zero(rest);
      chosen_.emplace_back(static_cast<uint16_t>(slice), static_cast<gpu::PlacementId>(placement));
      // The table has at most 64 placements. At 63 the same placement is tried again and rejected.
      Descend(slice, std::min(placement + 1, 63),
              layouts_.Add(layout, static_cast<gpu::PlacementId>(placement)));
      chosen_.pop_back();
    }
    ++left_[slice];
  }

  void Consider(gpu::LayoutId layout) {
    uint64_t taken = 0;
    for (const auto& [slice, placement] : chosen_) taken |= Bit(placement);
    const uint64_t others = start_.free & ~taken;
    const int destroyed = std::popcount(others & ~states_.KeptFree(start_.model, layout, others));
    const int changes = std::popcount(taken & ~start_.free) + destroyed;
    const int potential = potential_.Of(start_.model, layout);
    if (best_ && std::pair(changes, -potential) >= std::pair(best_->changes, -best_potential_))
      return;
    best_ = Arrangement{{}, changes};
    for (const auto& [slice, placement] : chosen_) {
      best_->takings.push_back({slice, placement, (start_.free & Bit(placement)) == 0});
    }
    best_potential_ = potential;
  }

  GpuStateTable& states_;
  GpuPotential& potential_;
  const Problem& problem_;
  const GpuState start_;
  const gpu::LayoutTable& layouts_;
  Counts left_;
  std::vector<std::pair<uint16_t, gpu::PlacementId>> chosen_;
  std::optional<Arrangement> best_;
  int best_potential_ = 0;
};

}  // namespace

std::optional<Arrangement> Arrangements::FindShares(const GpuState& start, const Counts& counts) {
  Arrangement arrangement;
  GpuState state = start;
  for (size_t s = 0; s < counts.size(); ++s) {
    const gpu::ProfileId profile = problem_.slices[s].profile[state.model];
    if (counts[s] > 0 && profile == kNoProfile) return std::nullopt;
    for (int n = 0; n < counts[s]; ++n) {
      const Open open = Open::Of(state.usable);
      const bool there = table_.shares().Has(state.free, profile);
      const Taken taken = Taken::Of(state.occupied);
      if (!there && !open.may_repartition) return std::nullopt;
      if (CopiesOfShare(*problem_.models[state.model], taken, open, profile) == 0) {
        return std::nullopt;
      }
      // Free shares that have to be removed for some slices may serve others, so none is removed
      // before all slices are handled.
      const Taken with{taken.slots + problem_.models[state.model]->profile(profile).slots,
                       taken.shares + 1};
      state.occupied = with.Pack();
      if (there) state.free = table_.shares().Without(state.free, profile);
      arrangement.takings.push_back({static_cast<uint16_t>(s), profile, !there});
      arrangement.changes += there ? 0 : 1;
    }
  }
  const uint64_t kept = table_.KeptFree(state.model, state.occupied, state.free);
  arrangement.changes +=
      static_cast<int>(table_.shares().Get(state.free).size() - table_.shares().Get(kept).size());
  return arrangement;
}

const std::optional<Arrangement>& Arrangements::Of(GpuStateId id, const Counts& counts) {
  const auto [it, fresh] = known_.try_emplace({id, counts});
  if (fresh) it->second = Find(id, counts);
  return it->second;
}

std::optional<Arrangement> Arrangements::Find(GpuStateId id, const Counts& counts) {
  GpuState state = table_.Get(id);
  int changes = 0;
  const auto first = std::ranges::find_if(counts, [](uint8_t n) { return n > 0; });
  const auto slice = static_cast<uint16_t>(first - counts.begin());
  if (first != counts.end() && state.alternative != kNoModel &&
      table_.ModelFor(state, slice) == state.alternative) {
    changes = table_.FreeInstances(state);
    state = table_.Switched(state);
  }
  std::optional<Arrangement> found =
      table_.IsCounted(state.model) ? FindShares(state, counts)
                                    : Arranger(table_, potential_, problem_, state).Find(counts);
  if (found) found->changes += changes;
  return found;
}

}  // namespace nos::planning
