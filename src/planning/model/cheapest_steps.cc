#include "planning/model/cheapest_steps.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace nos::planning {
namespace {

constexpr int kMaxFreeSlots = 255;  // limit of Step::free_slots

uint64_t Bit(int placement) { return uint64_t{1} << placement; }

}  // namespace

Step CheapestSteps::FindAt(size_t at, GpuStateId id, uint16_t slice) {
  const Step step = Find(id, slice);
  if (at >= steps_.size()) {
    steps_.resize(table_.size() * problem_.slices.size());
    known_.resize(steps_.size());
  }
  steps_[at] = step;
  known_[at] = true;
  return step;
}

Step CheapestSteps::Find(GpuStateId id, uint16_t slice) {
  const GpuState state = table_.Get(id);
  const uint16_t model = table_.ModelFor(state, slice);
  if (model == kNoModel) return {};
  if (model == state.model) return FindOn(state, slice);
  Step step = FindOn(table_.Switched(state), slice);
  const int destroyed = step.destroyed + table_.FreeInstances(state);
  step.destroyed = static_cast<uint8_t>(std::min(destroyed, kMaxFreeSlots));
  return step;
}

Step CheapestSteps::FindOn(const GpuState& state, uint16_t slice) {
  const gpu::ProfileId profile = problem_.slices[slice].profile[state.model];
  if (profile == kNoProfile) return {};
  return table_.IsCounted(state.model) ? FindShare(state, profile) : FindInstance(state, profile);
}

Step CheapestSteps::FindInstance(const GpuState& state, gpu::ProfileId profile) {
  const gpu::LayoutTable& layouts = table_.Layouts(state.model);
  const uint64_t can =
      layouts.PlacementsOf(profile) & state.usable & layouts.Addable(state.occupied);
  const bool reuse = (can & state.free) != 0;
  Step best;
  GpuState next;
  auto best_key = std::tuple(0, 0, 0);
  for (uint64_t rest = reuse ? can & state.free : can; rest != 0; rest &= rest - 1) {
    const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(rest));
    const gpu::LayoutId occupied = layouts.Add(state.occupied, placement);
    const uint64_t others = state.free & ~Bit(placement);
    const uint64_t kept = table_.KeptFree(state.model, occupied, others);
    const int destroyed = std::popcount(others & ~kept);
    const int left = potential_.Of(state.model, occupied);
    const auto key = std::tuple(destroyed, -left, -int{layouts.placements()[placement].start});
    if (best.possible && key >= best_key) continue;
    best_key = key;
    next = {state.model, occupied, kept, state.usable, kNoModel};
    const int slots = problem_.models[state.model]->slots();
    best = {.loss = potential_.Of(state.model, state.occupied) - left,
            .placement = placement,
            .destroyed = static_cast<uint8_t>(destroyed),
            .free_slots = static_cast<uint8_t>(slots - std::popcount(layouts.Slots(occupied))),
            .created = !reuse,
            .possible = true};
  }
  if (best.possible) best.next = table_.Intern(next);
  return best;
}

Step CheapestSteps::FindShare(const GpuState& state, gpu::ProfileId profile) {
  const gpu::Model& model = *problem_.models[state.model];
  const Open open = Open::Of(state.usable);
  const bool there = table_.shares().Has(state.free, profile);
  if (!there && !open.may_repartition) return {};
  if (CopiesOfShare(model, Taken::Of(state.occupied), open, profile) == 0) return {};
  const GpuState next = table_.Take(state, {{Taking{0, profile, !there}}});
  const size_t others = table_.FreeSharesOf(state).size() - (there ? 1 : 0);
  const int left = model.slots() - Taken::Of(next.occupied).slots;
  return {.next = table_.Intern(next),
          .loss = potential_.Of(state.model, state.occupied) -
                  potential_.Of(state.model, next.occupied),
          .placement = profile,
          .destroyed = static_cast<uint8_t>(others - table_.FreeSharesOf(next).size()),
          .free_slots = static_cast<uint8_t>(std::min(left, kMaxFreeSlots)),
          .created = !there,
          .possible = true};
}

}  // namespace nos::planning
