// Chooses the placements for a set of slices on one GPU.
#include <algorithm>
#include <bit>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "planning/model/gpu_states.h"

namespace nos::planning {
namespace {

uint64_t Bit(int placement) { return uint64_t{1} << placement; }

// Tries all placements of the slices on the GPU. Equal slices are tried in increasing order of
// placement only.
class Arranger {
 public:
  using Kept = std::function<uint64_t(gpu::LayoutId, uint64_t)>;  // GpuStates::KeptFree
  Arranger(GpuStates& states, const Problem& problem, const GpuState& start, Kept kept)
      : states_(states),
        problem_(problem),
        start_(start),
        kept_(std::move(kept)),
        table_(states.Table(start.model)) {}

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
    const uint64_t can = table_.PlacementsOf(profile) & start_.usable & table_.Addable(layout) &
                         (~uint64_t{0} << from);
    --left_[slice];
    for (uint64_t rest = can; rest != 0; rest &= rest - 1) {
      const int placement = std::countr_zero(rest);
      chosen_.emplace_back(static_cast<uint16_t>(slice), static_cast<gpu::PlacementId>(placement));
      // The table has at most 64 placements. At 63 the same placement is tried again and rejected.
      Descend(slice, std::min(placement + 1, 63),
              table_.Add(layout, static_cast<gpu::PlacementId>(placement)));
      chosen_.pop_back();
    }
    ++left_[slice];
  }

  void Consider(gpu::LayoutId layout) {
    uint64_t taken = 0;
    for (const auto& [slice, placement] : chosen_) taken |= Bit(placement);
    const uint64_t others = start_.free & ~taken;
    const int destroyed = std::popcount(others & ~kept_(layout, others));
    const int changes = std::popcount(taken & ~start_.free) + destroyed;
    const int potential = states_.Potential(start_.model, layout);
    if (best_ && std::pair(changes, -potential) >= std::pair(best_->changes, -potential_)) return;
    best_ = Arrangement{{}, changes};
    for (const auto& [slice, placement] : chosen_) {
      best_->takings.push_back({slice, placement, (start_.free & Bit(placement)) == 0});
    }
    potential_ = potential;
  }

  GpuStates& states_;
  const Problem& problem_;
  const GpuState start_;
  const Kept kept_;
  const gpu::LayoutTable& table_;
  Counts left_;
  std::vector<std::pair<uint16_t, gpu::PlacementId>> chosen_;
  std::optional<Arrangement> best_;
  int potential_ = 0;
};

}  // namespace

std::optional<Arrangement> GpuStates::ArrangeShares(const GpuState& start, const Counts& counts) {
  Arrangement arrangement;
  GpuState state = start;
  for (size_t s = 0; s < counts.size(); ++s) {
    const gpu::ProfileId profile = problem_.slices[s].profile[state.model];
    if (counts[s] > 0 && profile == kNoProfile) return std::nullopt;
    for (int n = 0; n < counts[s]; ++n) {
      const Open open = Open::Of(state.usable);
      const bool there = shares_.Has(state.free, profile);
      const Taken taken = Taken::Of(state.occupied);
      if (!there && !open.recut) return std::nullopt;
      if (CopiesOfShare(*problem_.models[state.model], taken, open, profile) == 0) {
        return std::nullopt;
      }
      // Free shares that have to be removed for some slices may serve others, so none is removed
      // before all slices are handled.
      const Taken with{taken.slots + problem_.models[state.model]->profile(profile).slots,
                       taken.shares + 1};
      state.occupied = with.Pack();
      if (there) state.free = shares_.Without(state.free, profile);
      arrangement.takings.push_back({static_cast<uint16_t>(s), profile, !there});
      arrangement.changes += there ? 0 : 1;
    }
  }
  const uint64_t kept = KeptFree(state.model, state.occupied, state.free);
  arrangement.changes +=
      static_cast<int>(shares_.Get(state.free).size() - shares_.Get(kept).size());
  return arrangement;
}

const std::optional<Arrangement>& GpuStates::Arrange(GpuStateId id, const Counts& counts) {
  const auto [it, fresh] = arrangements_.try_emplace({id, counts});
  if (!fresh) return it->second;
  GpuState state = states_[id];
  int changes = 0;
  const auto first = std::ranges::find_if(counts, [](uint8_t n) { return n > 0; });
  const auto slice = static_cast<uint16_t>(first - counts.begin());
  if (first != counts.end() && ModelFor(state, slice) == state.other && state.other != kNoModel) {
    changes = FreeInstances(state);
    state = Switched(state);
  }
  if (IsCounted(state.model)) {
    it->second = ArrangeShares(state, counts);
  } else {
    const auto kept = [&](gpu::LayoutId layout, uint64_t free) {
      return KeptFree(state.model, layout, free);
    };
    it->second = Arranger(*this, problem_, state, kept).Find(counts);
  }
  if (it->second) it->second->changes += changes;
  return it->second;
}

}  // namespace nos::planning
