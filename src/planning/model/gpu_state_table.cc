#include "planning/model/gpu_state_table.h"

#include <algorithm>
#include <bit>

namespace nos::planning {
namespace {

uint64_t Bit(int placement) { return uint64_t{1} << placement; }

}  // namespace

size_t GpuStateTable::Hash::operator()(const GpuState& s) const {
  uint64_t h = (uint64_t{s.model} << 16 | s.occupied) * 0x9e3779b97f4a7c15ULL;
  h = (h ^ s.free ^ (h >> 29)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ s.usable ^ (h >> 32)) * 0x94d049bb133111ebULL;
  h ^= uint64_t{s.alternative} << 40;
  return h ^ (h >> 31);
}

GpuStateId GpuStateTable::Intern(const GpuState& state) {
  const auto [it, fresh] = ids_.try_emplace(state, static_cast<GpuStateId>(states_.size()));
  if (fresh) states_.push_back(state);
  return it->second;
}

GpuStateId GpuStateTable::Start(const ProblemGpu& gpu, bool empty) {
  // Slots are kept for the current model, so such a GPU cannot switch.
  const bool switches = gpu.may_repartition && !gpu.IsUsed() && gpu.blocked == 0 &&
                        gpu.kept_slots == 0 && gpu.kept_shares == 0;
  const uint16_t other = switches ? gpu.alternative : kNoModel;
  if (!IsCounted(gpu.model)) {
    const uint64_t kept = KeptFree(gpu.model, gpu.used, gpu.free);
    const uint64_t usable =
        gpu.broken ? 0 : (gpu.may_repartition ? ~uint64_t{0} : kept) & ~gpu.blocked;
    return Intern({gpu.model, gpu.used, empty ? 0 : kept, usable, other});
  }
  const gpu::Model& model = *problem_.models[gpu.model];
  Taken taken{0, static_cast<int>(gpu.used_shares.size())};
  for (const gpu::ProfileId profile : gpu.used_shares) taken.slots += model.profile(profile).slots;
  const uint64_t kept = shares_.Kept(model, taken, shares_.Intern(gpu.free_shares));
  const Open open{gpu.may_repartition, gpu.broken ? model.slots() : gpu.kept_slots,
                  gpu.kept_shares};
  return Intern({gpu.model, taken.Pack(), empty ? 0 : kept, open.Pack(), other});
}

uint16_t GpuStateTable::ModelFor(const GpuState& state, uint16_t slice) const {
  const std::vector<gpu::ProfileId>& profile = problem_.slices[slice].profile;
  if (profile[state.model] != kNoProfile) return state.model;
  return state.alternative != kNoModel && profile[state.alternative] != kNoProfile
             ? state.alternative
             : kNoModel;
}

GpuState GpuStateTable::Switched(const GpuState& state) const {
  const uint64_t usable =
      IsCounted(state.alternative) ? Open{.may_repartition = true}.Pack() : ~uint64_t{0};
  const uint64_t none = 0;  // FreeShares: 0 for none
  return {state.alternative, gpu::LayoutTable::kEmpty, none, usable, kNoModel};
}

std::vector<GpuState> GpuStateTable::SharingModesOf(const GpuState& state) const {
  std::vector<GpuState> ways = {state};
  ways.front().alternative = kNoModel;
  if (state.alternative != kNoModel) ways.push_back(Switched(state));
  return ways;
}

int GpuStateTable::MostInstances(const GpuState& state) const {
  const int slots = problem_.models[state.model]->slots();
  return state.alternative == kNoModel
             ? slots
             : std::max(slots, problem_.models[state.alternative]->slots());
}

int GpuStateTable::FreeInstances(const GpuState& state) const {
  return IsCounted(state.model) ? static_cast<int>(shares_.Get(state.free).size())
                                : std::popcount(state.free);
}

GpuState GpuStateTable::TakeShares(GpuState state, std::span<const Taking> takings) {
  const gpu::Model& model = *problem_.models[state.model];
  Taken taken = Taken::Of(state.occupied);
  for (const Taking& one : takings) {
    taken.slots += model.profile(one.placement).slots;
    ++taken.shares;
    if (!one.created && shares_.Has(state.free, one.placement)) {
      state.free = shares_.Without(state.free, one.placement);
    }
  }
  state.occupied = taken.Pack();
  state.free = shares_.Kept(model, taken, state.free);
  return state;
}

GpuStateId GpuStateTable::After(GpuStateId id, std::span<const Taking> takings) {
  const GpuState& state = states_[id];
  if (takings.empty()) return id;
  // All slices on one GPU are of the same model.
  const bool stays = ModelFor(state, takings.front().slice) == state.model;
  return Intern(Take(stays ? state : Switched(state), takings));
}

GpuState GpuStateTable::Take(GpuState state, std::span<const Taking> takings) {
  state.alternative = kNoModel;
  if (IsCounted(state.model)) return TakeShares(state, takings);
  const gpu::LayoutTable& table = Layouts(state.model);
  for (const Taking& one : takings) {
    state.occupied = table.Add(state.occupied, one.placement);
    state.free &= ~Bit(one.placement);
  }
  state.free = KeptFree(state.model, state.occupied, state.free);
  return state;
}

int GpuStateTable::Destroyed(GpuStateId before_id, GpuStateId after_id, int created) const {
  const GpuState &before = states_[before_id], &after = states_[after_id];
  if (before.model != after.model) return FreeInstances(before);
  if (!IsCounted(before.model)) {
    const uint64_t there = after.free | Layouts(before.model).Members(after.occupied);
    return std::popcount(before.free & ~there);
  }
  const int taken = Taken::Of(after.occupied).shares - Taken::Of(before.occupied).shares;
  const auto gone = shares_.Get(before.free).size() - shares_.Get(after.free).size();
  return static_cast<int>(gone) - (taken - created);
}

int GpuStateTable::TakenSlots(GpuStateId id) const {
  const GpuState& state = states_[id];
  if (IsCounted(state.model)) return Taken::Of(state.occupied).slots;
  return std::popcount(Layouts(state.model).Slots(state.occupied));
}

uint64_t GpuStateTable::KeptFree(uint16_t model, gpu::LayoutId occupied, uint64_t free) {
  if (IsCounted(model)) {
    return shares_.Kept(*problem_.models[model], Taken::Of(occupied), free);
  }
  const gpu::LayoutTable& table = Layouts(model);
  uint64_t kept = 0;
  for (uint64_t rest = free; rest != 0; rest &= rest - 1) {
    const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(rest));
    const gpu::LayoutId with = table.Add(occupied, placement);
    if (with == gpu::LayoutTable::kIllegal) continue;
    occupied = with;
    kept |= Bit(placement);
  }
  return kept;
}

}  // namespace nos::planning
