#include "planning/gpu_states.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "gpu/fragmentation.h"
#include "planning/pack.h"

namespace nos::planning {
namespace {

// How much more a profile weighs when pods ask for it now.
constexpr int kDemandWeight = 16;

uint64_t Bit(int placement) { return uint64_t{1} << placement; }

bool Contains(const Counts& outer, const Counts& inner) {
  return std::equal(inner.begin(), inner.end(), outer.begin(), std::less_equal<>());
}

void KeepMaximal(std::vector<Counts>& sets) {
  std::sort(sets.begin(), sets.end(), std::greater<>());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  std::vector<Counts> maximal;
  for (const Counts& set : sets) {  // a set that contains another one sorts before it
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
  return h ^ (h >> 31);
}

GpuStates::GpuStates(const Problem& problem)
    : problem_(problem), node_value_(problem.packing.demand) {
  for (size_t m = 0; m < problem.models.size(); ++m) {
    const gpu::Model& model = *problem.models[m];
    std::vector<int>& weight = weight_.emplace_back(model.profiles().size());
    for (const gpu::ProfileId p : gpu::PlainProfiles(model)) weight[p] = model.profile(p).compute;
    for (const Slice& slice : problem.slices) {
      const gpu::ProfileId p = slice.profile[m];
      if (p != kNoProfile) weight[p] += model.profile(p).compute * kDemandWeight;
    }
    potential_.emplace_back(model.layouts().size(), -1);
  }
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
  const gpu::LayoutTable& table = Table(model);
  known = 0;
  for (size_t p = 0; p < table.profile_count(); ++p) {
    known += weight_[model][p] * table.Copies(layout, static_cast<gpu::ProfileId>(p));
  }
  return known;
}

uint64_t GpuStates::KeptFree(uint16_t model, gpu::LayoutId occupied, uint64_t free) const {
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
    const Step step = FindStep(id, slice);  // may number a new state
    steps_[at] = step;
    steps_known_[at] = true;
  }
  return steps_[at];
}

Step GpuStates::FindStep(GpuStateId id, uint16_t slice) {
  const GpuState state = states_[id];
  const gpu::ProfileId profile = problem_.slices[slice].profile[state.model];
  if (profile == kNoProfile) return {};
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
    next = {state.model, occupied, kept, state.usable};
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

const std::vector<Counts>& GpuStates::MaximalSets(GpuStateId id) {
  if (maximal_[id].empty()) maximal_[id] = FindMaximalSets(states_[id]);
  return maximal_[id];
}

std::vector<Counts> GpuStates::FindMaximalSets(const GpuState& state) const {
  const gpu::LayoutTable& table = Table(state.model);
  const uint64_t base = table.Members(state.occupied);
  std::vector<Counts> sets;
  for (size_t layout = 0; layout < table.size(); ++layout) {
    const uint64_t members = table.Members(static_cast<gpu::LayoutId>(layout));
    const uint64_t added = members & ~base;
    if ((base & ~members) != 0 || (added & ~state.usable) != 0) continue;
    Counts counts(problem_.slices.size());
    for (size_t s = 0; s < counts.size(); ++s) {
      const gpu::ProfileId profile = problem_.slices[s].profile[state.model];
      if (profile == kNoProfile) continue;
      counts[s] = static_cast<uint8_t>(std::popcount(added & table.PlacementsOf(profile)));
    }
    sets.push_back(std::move(counts));
  }
  KeepMaximal(sets);
  return sets;
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
  const std::vector<Counts>& sets = MaximalSets(id);
  MostOnGpu& most = most_[id];
  if (!most.each.empty()) return most;
  most.each.resize(problem_.slices.size());
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
  return most;
}

namespace {

// Tries every way to put the slices on the GPU, equal slices by rising placement.
class Arranger {
 public:
  Arranger(GpuStates& states, const Problem& problem, const GpuState& start)
      : states_(states), problem_(problem), start_(start), table_(states.Table(start.model)) {}

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
      // Nothing lies beyond the last of 64 placements; a second equal one cannot be added anyway.
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
    const int destroyed = std::popcount(others & ~states_.KeptFree(start_.model, layout, others));
    const int changes = std::popcount(taken & ~start_.free) + destroyed;
    const int potential = states_.Potential(start_.model, layout);
    if (best_ && std::pair(changes, -potential) >= std::pair(best_->changes, -potential_)) return;
    best_ = Arrangement{chosen_, changes};
    potential_ = potential;
  }

  GpuStates& states_;
  const Problem& problem_;
  const GpuState start_;
  const gpu::LayoutTable& table_;
  Counts left_;
  std::vector<std::pair<uint16_t, gpu::PlacementId>> chosen_;
  std::optional<Arrangement> best_;
  int potential_ = 0;
};

}  // namespace

const std::optional<Arrangement>& GpuStates::Arrange(GpuStateId id, const Counts& counts) {
  const auto [it, fresh] = arrangements_.try_emplace({id, counts});
  if (fresh) it->second = Arranger(*this, problem_, states_[id]).Find(counts);
  return it->second;
}

namespace {

constexpr size_t kMostRemembered = 1'000'000;
constexpr int64_t kStepsOfPacking = 3000;  // between two questions whether to stop

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
  if (fits_.size() >= kMostRemembered) fits_.clear();
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
  if (packings_.size() >= kMostRemembered) packings_.clear();
  return &packings_.insert_or_assign(Key(gpus, slices), std::move(packed.counts)).first->second;
}

}  // namespace nos::planning
