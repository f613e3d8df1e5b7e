#include "planning/model/gpu_states.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <tuple>

#include "gpu/fragmentation.h"
#include "planning/model/pack.h"

namespace nos::planning {
namespace {

// Extra weight of a profile that pods request now.
constexpr int kDemandWeight = 16;
constexpr int kMaxAsked = 1'000'000;    // per slice
constexpr int kMaxFreeSlots = 255;      // limit of Step::free_slots
constexpr size_t kMaxShareSets = 1000;  // maximal sets of shares of one GPU

uint64_t Bit(int placement) { return uint64_t{1} << placement; }

bool Contains(const Counts& outer, const Counts& inner) {
  return std::equal(inner.begin(), inner.end(), outer.begin(), std::less_equal<>());
}

void KeepMaximal(std::vector<Counts>& sets) {
  std::sort(sets.begin(), sets.end(), std::greater<>());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  std::vector<Counts> maximal;
  for (const Counts& set : sets) {  // a containing set sorts before the contained one
    const auto contains = [&set](const Counts& other) { return Contains(other, set); };
    if (std::none_of(maximal.begin(), maximal.end(), contains)) maximal.push_back(set);
  }
  sets = std::move(maximal);
}

}  // namespace

size_t GpuStates::Hash::operator()(const GpuState& s) const {
  uint64_t h = (uint64_t{s.model} << 16 | s.occupied) * 0x9e3779b97f4a7c15ULL;
  h = (h ^ s.free ^ (h >> 29)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ s.usable ^ (h >> 32)) * 0x94d049bb133111ebULL;
  h ^= uint64_t{s.other} << 40;
  return h ^ (h >> 31);
}

GpuStates::GpuStates(const Problem& problem)
    : problem_(problem), node_value_(problem.packing.demand), asked_(problem.slices.size()) {
  for (const PodClass& cls : problem.classes) {
    for (const SliceCount& s : cls.slices) {
      const int64_t asked = asked_[s.slice] + int64_t{s.count} * cls.count;
      asked_[s.slice] = static_cast<int>(std::min<int64_t>(asked, kMaxAsked));
    }
  }
  for (size_t m = 0; m < problem.models.size(); ++m) LearnWeights(*problem.models[m], m);
}

void GpuStates::LearnWeights(const gpu::Model& model, size_t index) {
  const auto worth = [&](gpu::ProfileId p) {
    return model.counted() ? model.profile(p).slots : model.profile(p).compute;
  };
  std::vector<int>& weight = weight_.emplace_back(model.profiles().size());
  for (const gpu::ProfileId p : gpu::PlainProfiles(model)) weight[p] = worth(p);
  for (const Slice& slice : problem_.slices) {
    const gpu::ProfileId p = slice.profile[index];
    if (p != kNoProfile) weight[p] += worth(p) * kDemandWeight;
  }
  std::vector<gpu::ProfileId>& weighty = weighty_.emplace_back();
  for (size_t p = 0; p < weight.size(); ++p) {
    if (weight[p] > 0) weighty.push_back(static_cast<gpu::ProfileId>(p));
  }
  const size_t layouts =
      model.counted() ? size_t{Taken{model.slots() + 1, 0}.Pack()} : model.layouts().size();
  potential_.emplace_back(layouts, -1);
}

GpuStateId GpuStates::Intern(const GpuState& state) {
  const auto [it, fresh] = ids_.try_emplace(state, static_cast<GpuStateId>(states_.size()));
  if (!fresh) return it->second;
  states_.push_back(state);
  steps_.resize(states_.size() * problem_.slices.size());
  steps_known_.resize(steps_.size());
  maximal_.emplace_back();
  most_.emplace_back();
  return it->second;
}

int GpuStates::Potential(uint16_t model, gpu::LayoutId layout) {
  int& known = potential_[model][layout];
  if (known >= 0) return known;
  known = 0;
  for (const gpu::ProfileId p : weighty_[model]) {
    const int copies = IsCounted(model)
                           ? CopiesOfShare(*problem_.models[model], Taken::Of(layout), {}, p)
                           : Table(model).Copies(layout, p);
    known += weight_[model][p] * copies;
  }
  return known;
}

GpuStateId GpuStates::Start(const ProblemGpu& gpu, bool empty) {
  // Slots are kept for the current model, so such a GPU cannot switch.
  const bool switches =
      gpu.recut && !gpu.IsUsed() && gpu.blocked == 0 && gpu.kept_slots == 0 && gpu.kept_shares == 0;
  const uint16_t other = switches ? gpu.other : kNoModel;
  if (!IsCounted(gpu.model)) {
    const uint64_t kept = KeptFree(gpu.model, gpu.used, gpu.free);
    const uint64_t usable = gpu.broken ? 0 : (gpu.recut ? ~uint64_t{0} : kept) & ~gpu.blocked;
    return Intern({gpu.model, gpu.used, empty ? 0 : kept, usable, other});
  }
  const gpu::Model& model = *problem_.models[gpu.model];
  Taken taken{0, static_cast<int>(gpu.used_shares.size())};
  for (const gpu::ProfileId profile : gpu.used_shares) taken.slots += model.profile(profile).slots;
  const uint64_t kept = shares_.Kept(model, taken, shares_.Intern(gpu.free_shares));
  const Open open{gpu.recut, gpu.broken ? model.slots() : gpu.kept_slots, gpu.kept_shares};
  return Intern({gpu.model, taken.Pack(), empty ? 0 : kept, open.Pack(), other});
}

uint16_t GpuStates::ModelFor(const GpuState& state, uint16_t slice) const {
  const std::vector<gpu::ProfileId>& profile = problem_.slices[slice].profile;
  if (profile[state.model] != kNoProfile) return state.model;
  return state.other != kNoModel && profile[state.other] != kNoProfile ? state.other : kNoModel;
}

GpuState GpuStates::Switched(const GpuState& state) const {
  const uint64_t usable = IsCounted(state.other) ? Open{.recut = true}.Pack() : ~uint64_t{0};
  const uint64_t none = 0;  // FreeShares: 0 for none
  return {state.other, gpu::LayoutTable::kEmpty, none, usable, kNoModel};
}

std::vector<GpuState> GpuStates::SharingModesOf(const GpuState& state) const {
  std::vector<GpuState> ways = {state};
  ways.front().other = kNoModel;
  if (state.other != kNoModel) ways.push_back(Switched(state));
  return ways;
}

int GpuStates::MostInstances(const GpuState& state) const {
  const int slots = problem_.models[state.model]->slots();
  return state.other == kNoModel ? slots : std::max(slots, problem_.models[state.other]->slots());
}

int GpuStates::FreeInstances(const GpuState& state) const {
  return IsCounted(state.model) ? static_cast<int>(shares_.Get(state.free).size())
                                : std::popcount(state.free);
}

int GpuStates::Lost(const GpuState& before, const GpuState& after) {
  const int was = Potential(before.model, before.occupied);
  if (before.model == after.model) return was - Potential(after.model, after.occupied);
  // Relative to an empty GPU of the new model.
  return Potential(after.model, gpu::LayoutTable::kEmpty) - Potential(after.model, after.occupied);
}

GpuState GpuStates::AfterShares(GpuState state, std::span<const Taking> takings) {
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

GpuStateId GpuStates::After(GpuStateId id, std::span<const Taking> takings) {
  const GpuState& state = states_[id];
  if (takings.empty()) return id;
  // All slices on one GPU are of the same model.
  const bool stays = ModelFor(state, takings.front().slice) == state.model;
  return Intern(AfterAll(stays ? state : Switched(state), takings));
}

GpuState GpuStates::AfterAll(GpuState state, std::span<const Taking> takings) {
  state.other = kNoModel;
  if (IsCounted(state.model)) return AfterShares(state, takings);
  const gpu::LayoutTable& table = Table(state.model);
  for (const Taking& one : takings) {
    state.occupied = table.Add(state.occupied, one.placement);
    state.free &= ~Bit(one.placement);
  }
  state.free = KeptFree(state.model, state.occupied, state.free);
  return state;
}

int GpuStates::Destroyed(GpuStateId before_id, GpuStateId after_id, int created) const {
  const GpuState &before = states_[before_id], &after = states_[after_id];
  if (before.model != after.model) return FreeInstances(before);
  if (!IsCounted(before.model)) {
    const uint64_t there = after.free | Table(before.model).Members(after.occupied);
    return std::popcount(before.free & ~there);
  }
  const int taken = Taken::Of(after.occupied).shares - Taken::Of(before.occupied).shares;
  const auto gone = shares_.Get(before.free).size() - shares_.Get(after.free).size();
  return static_cast<int>(gone) - (taken - created);
}

int GpuStates::TakenSlots(GpuStateId id) const {
  const GpuState& state = states_[id];
  if (IsCounted(state.model)) return Taken::Of(state.occupied).slots;
  return std::popcount(Table(state.model).Slots(state.occupied));
}

uint64_t GpuStates::KeptFree(uint16_t model, gpu::LayoutId occupied, uint64_t free) {
  if (IsCounted(model)) {
    return shares_.Kept(*problem_.models[model], Taken::Of(occupied), free);
  }
  const gpu::LayoutTable& table = Table(model);
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

Step GpuStates::Next(GpuStateId id, uint16_t slice) {
  const size_t at = id * problem_.slices.size() + slice;
  if (!steps_known_[at]) {
    const Step step = FindStep(id, slice);  // may add a state
    steps_[at] = step;
    steps_known_[at] = true;
  }
  return steps_[at];
}

Step GpuStates::FindStep(GpuStateId id, uint16_t slice) {
  const GpuState state = states_[id];
  const uint16_t model = ModelFor(state, slice);
  if (model == kNoModel) return {};
  if (model == state.model) return FindStepIn(state, slice);
  Step step = FindStepIn(Switched(state), slice);
  const int destroyed = step.destroyed + FreeInstances(state);
  step.destroyed = static_cast<uint8_t>(std::min(destroyed, kMaxFreeSlots));
  return step;
}

Step GpuStates::FindStepIn(const GpuState& state, uint16_t slice) {
  const gpu::ProfileId profile = problem_.slices[slice].profile[state.model];
  if (profile == kNoProfile) return {};
  if (IsCounted(state.model)) return FindShareStep(state, profile);
  const gpu::LayoutTable& table = Table(state.model);
  const uint64_t can = table.PlacementsOf(profile) & state.usable & table.Addable(state.occupied);
  const bool reuse = (can & state.free) != 0;
  Step best;
  GpuState next;
  auto best_key = std::tuple(0, 0, 0);
  for (uint64_t rest = reuse ? can & state.free : can; rest != 0; rest &= rest - 1) {
    const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(rest));
    const gpu::LayoutId occupied = table.Add(state.occupied, placement);
    const uint64_t others = state.free & ~Bit(placement);
    const uint64_t kept = KeptFree(state.model, occupied, others);
    const int destroyed = std::popcount(others & ~kept);
    const int left = Potential(state.model, occupied);
    const auto key = std::tuple(destroyed, -left, -int{table.placements()[placement].start});
    if (best.possible && key >= best_key) continue;
    best_key = key;
    next = {state.model, occupied, kept, state.usable, kNoModel};
    const int slots = problem_.models[state.model]->slots();
    best = {.loss = Potential(state.model, state.occupied) - left,
            .placement = placement,
            .destroyed = static_cast<uint8_t>(destroyed),
            .free_slots = static_cast<uint8_t>(slots - std::popcount(table.Slots(occupied))),
            .created = !reuse,
            .possible = true};
  }
  if (best.possible) best.next = Intern(next);
  return best;
}

Step GpuStates::FindShareStep(const GpuState& state, gpu::ProfileId profile) {
  const gpu::Model& model = *problem_.models[state.model];
  const Open open = Open::Of(state.usable);
  const bool there = shares_.Has(state.free, profile);
  if (!there && !open.recut) return {};
  if (CopiesOfShare(model, Taken::Of(state.occupied), open, profile) == 0) return {};
  const GpuState next = AfterAll(state, {{Taking{0, profile, !there}}});
  const size_t others = FreeSharesOf(state).size() - (there ? 1 : 0);
  const int left = model.slots() - Taken::Of(next.occupied).slots;
  return {.next = Intern(next),
          .loss = Potential(state.model, state.occupied) - Potential(state.model, next.occupied),
          .placement = profile,
          .destroyed = static_cast<uint8_t>(others - FreeSharesOf(next).size()),
          .free_slots = static_cast<uint8_t>(std::min(left, kMaxFreeSlots)),
          .created = !there,
          .possible = true};
}

const std::vector<Counts>* GpuStates::MaximalSets(GpuStateId id) {
  if (!maximal_[id]) {
    auto found = MaximalSetsWithin(id, asked_);
    maximal_[id] = std::move(found);
  }
  const auto& known = maximal_[id];
  return known && known->has_value() ? &**known : nullptr;
}

std::optional<std::vector<Counts>> GpuStates::MaximalSetsWithin(GpuStateId id,
                                                                std::span<const int> most) {
  const GpuState& state = states_[id];
  auto sets = MaximalSetsOf(state, most);
  if (state.other == kNoModel || !sets) return sets;
  const auto others = MaximalSetsOf(Switched(state), most);
  if (!others) return std::nullopt;
  sets->insert(sets->end(), others->begin(), others->end());
  KeepMaximal(*sets);
  return sets;
}

std::optional<std::vector<Counts>> GpuStates::MaximalSetsOf(const GpuState& state,
                                                            std::span<const int> most) {
  if (!IsCounted(state.model)) return LayoutSets(state);
  const gpu::Model& model = *problem_.models[state.model];
  const Open open = Open::Of(state.usable);
  std::vector<std::optional<gpu::ProfileId>> profiles;
  for (const Slice& slice : problem_.slices) {
    const gpu::ProfileId profile = slice.profile[state.model];
    profiles.push_back(profile == kNoProfile ? std::nullopt : std::optional(profile));
  }
  if (open.recut) {
    return LargestShareSets(model, Taken::Of(state.occupied), open, profiles, most, kMaxShareSets);
  }
  Counts counts(profiles.size());
  for (size_t s = 0; s < counts.size(); ++s) {
    const std::optional<gpu::ProfileId>& profile = profiles[s];
    const auto there = profile ? std::ranges::count(FreeSharesOf(state), *profile) : 0;
    counts[s] = static_cast<uint8_t>(std::min<int64_t>(there, most[s]));
  }
  return std::vector<Counts>{counts};
}

const std::vector<Counts>& GpuStates::LayoutSets(const GpuState& state) {
  const auto [at, fresh] = layout_sets_.try_emplace({state.model, state.occupied, state.usable});
  if (fresh) at->second = FindMaximalSets(state);
  return at->second;
}

std::vector<Counts> GpuStates::FindMaximalSets(const GpuState& state) const {
  const gpu::LayoutTable& table = Table(state.model);
  const uint64_t base = table.Members(state.occupied);
  std::vector<std::pair<size_t, uint64_t>> kinds;  // slices and their placements
  for (size_t s = 0; s < problem_.slices.size(); ++s) {
    const gpu::ProfileId profile = problem_.slices[s].profile[state.model];
    if (profile != kNoProfile) kinds.emplace_back(s, table.PlacementsOf(profile));
  }
  std::set<Counts> sets;  // many layouts have equal counts
  Counts counts(problem_.slices.size());
  for (size_t layout = 0; layout < table.size(); ++layout) {
    const uint64_t members = table.Members(static_cast<gpu::LayoutId>(layout));
    const uint64_t added = members & ~base;
    if ((base & ~members) != 0 || (added & ~state.usable) != 0) continue;
    // Not maximal: another layout contains it.
    if ((table.Addable(static_cast<gpu::LayoutId>(layout)) & state.usable) != 0) continue;
    for (const auto& [slice, placements] : kinds) {
      counts[slice] = static_cast<uint8_t>(std::popcount(added & placements));
    }
    sets.insert(counts);
  }
  std::vector<Counts> maximal(sets.begin(), sets.end());
  KeepMaximal(maximal);
  return maximal;
}

MostOnGpu GpuStates::WorthOf(std::span<const SliceCount> slices) const {
  MostOnGpu worth;
  for (const SliceCount& s : slices) {
    worth.size += int64_t{s.count} * problem_.slices[s.slice].size;
    worth.compute += int64_t{s.count} * problem_.slices[s.slice].compute;
  }
  return worth;
}

const MostOnGpu& GpuStates::MostOn(GpuStateId id) {
  if (!most_[id].each.empty() || problem_.slices.empty()) return most_[id];
  MostOnGpu most;
  most.each.resize(problem_.slices.size());
  const GpuState state = states_[id];
  for (const GpuState& way : SharingModesOf(state)) {
    if (IsCounted(way.model)) {
      AddMostShares(way, most);
    } else if (state.other == kNoModel) {
      AddMostOf(*MaximalSets(id), most);
    } else {
      AddMostOf(LayoutSets(way), most);
    }
  }
  return most_[id] = std::move(most);
}

void GpuStates::AddMostShares(const GpuState& state, MostOnGpu& most) {
  const gpu::Model& model = *problem_.models[state.model];
  const Taken taken = Taken::Of(state.occupied);
  int64_t compute = 0;
  for (size_t s = 0; s < most.each.size(); ++s) {
    const gpu::ProfileId profile = problem_.slices[s].profile[state.model];
    if (profile == kNoProfile) continue;
    most.each[s] =
        static_cast<uint8_t>(CopiesOfShare(model, taken, Open::Of(state.usable), profile));
    compute += int64_t{most.each[s]} * problem_.slices[s].compute;
  }
  most.compute = std::max(most.compute, compute);
  // On other models than the largest one a share may be a smaller part of the GPU, so the size is
  // no limit.
  most.size = std::numeric_limits<int>::max();
}

void GpuStates::AddMostOf(const std::vector<Counts>& sets, MostOnGpu& most) const {
  for (const Counts& set : sets) {
    std::vector<SliceCount> slices;
    for (size_t s = 0; s < set.size(); ++s) {
      most.each[s] = std::max(most.each[s], set[s]);
      slices.push_back({.slice = static_cast<uint16_t>(s), .count = set[s]});
    }
    const MostOnGpu worth = WorthOf(slices);
    most.size = std::max(most.size, worth.size);
    most.compute = std::max(most.compute, worth.compute);
  }
}

namespace {

constexpr size_t kMaxRemembered = 1'000'000;
constexpr int64_t kStepsOfPacking = 3000;  // between two calls of stop_

uint64_t Key(int gpus, int slices) {
  return static_cast<uint64_t>(gpus) << 32 | static_cast<uint32_t>(slices);
}

template <typename T>
int InternIn(const T& value, std::map<T, int>& ids, std::vector<const T*>& all) {
  const auto [it, fresh] = ids.try_emplace(value, static_cast<int>(all.size()));
  if (fresh) all.push_back(&it->first);
  return it->second;
}

}  // namespace

int GpuStates::InternGpus(const std::vector<GpuStateId>& gpus) {
  return InternIn(gpus, gpus_ids_, gpus_);
}

int GpuStates::InternSlices(const std::vector<SliceCount>& slices) {
  return InternIn(slices, slices_ids_, slices_);
}

const bool* GpuStates::Fits(int gpus, int slices) const {
  const auto found = fits_.find(Key(gpus, slices));
  return found == fits_.end() ? nullptr : &found->second;
}

void GpuStates::Remember(int gpus, int slices, bool fits) {
  if (fits_.size() >= kMaxRemembered) fits_.clear();
  fits_.insert_or_assign(Key(gpus, slices), fits);
}

const std::optional<std::vector<Counts>>* GpuStates::Pack(int gpus, int slices) {
  const auto found = packings_.find(Key(gpus, slices));
  if (found != packings_.end()) return &found->second;
  const auto stop = [this] {
    AddWork(kStepsOfPacking);
    return stop_();
  };
  Packed packed = PackSlices(*this, *gpus_[gpus], *slices_[slices], problem_.slices.size(), stop);
  if (!packed.known) return nullptr;
  if (packings_.size() >= kMaxRemembered) packings_.clear();
  return &packings_.insert_or_assign(Key(gpus, slices), std::move(packed.counts)).first->second;
}

}  // namespace nos::planning
