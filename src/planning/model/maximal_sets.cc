#include "planning/model/maximal_sets.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <set>
#include <utility>

namespace nos::planning {
namespace {

constexpr int kMaxAsked = 1'000'000;    // per slice
constexpr size_t kMaxShareSets = 1000;  // maximal sets of shares of one GPU

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

MaximalSets::MaximalSets(const Problem& problem, const GpuStateTable& table)
    : problem_(problem), table_(table), asked_(problem.slices.size()) {
  for (const PodClass& cls : problem.classes) {
    for (const SliceCount& s : cls.slices) {
      const int64_t asked = asked_[s.slice] + int64_t{s.count} * cls.count;
      asked_[s.slice] = static_cast<int>(std::min<int64_t>(asked, kMaxAsked));
    }
  }
}

const std::vector<Counts>* MaximalSets::Of(GpuStateId id) {
  if (id >= by_state_.size()) by_state_.resize(table_.size());
  auto& known = by_state_[id];
  if (!known) known = Within(id, asked_);
  return known->has_value() ? &**known : nullptr;
}

std::optional<std::vector<Counts>> MaximalSets::Within(GpuStateId id, std::span<const int> most) {
  const GpuState& state = table_.Get(id);
  auto sets = OnModel(state, most);
  if (state.alternative == kNoModel || !sets) return sets;
  const auto others = OnModel(table_.Switched(state), most);
  if (!others) return std::nullopt;
  sets->insert(sets->end(), others->begin(), others->end());
  KeepMaximal(*sets);
  return sets;
}

std::optional<std::vector<Counts>> MaximalSets::OnModel(const GpuState& state,
                                                        std::span<const int> most) {
  if (!table_.IsCounted(state.model)) return OfLayout(state);
  const gpu::Model& model = *problem_.models[state.model];
  const Open open = Open::Of(state.usable);
  std::vector<std::optional<gpu::ProfileId>> profiles;
  for (const Slice& slice : problem_.slices) {
    const gpu::ProfileId profile = slice.profile[state.model];
    profiles.push_back(profile == kNoProfile ? std::nullopt : std::optional(profile));
  }
  if (open.may_repartition) {
    return LargestShareSets(model, Taken::Of(state.occupied), open, profiles, most, kMaxShareSets);
  }
  Counts counts(profiles.size());
  for (size_t s = 0; s < counts.size(); ++s) {
    const std::optional<gpu::ProfileId>& profile = profiles[s];
    const auto there = profile ? std::ranges::count(table_.FreeSharesOf(state), *profile) : 0;
    counts[s] = static_cast<uint8_t>(std::min<int64_t>(there, most[s]));
  }
  return std::vector<Counts>{counts};
}

const std::vector<Counts>& MaximalSets::OfLayout(const GpuState& state) {
  const auto [at, fresh] = by_layout_.try_emplace({state.model, state.occupied, state.usable});
  if (fresh) at->second = FindOfLayout(state);
  return at->second;
}

std::vector<Counts> MaximalSets::FindOfLayout(const GpuState& state) const {
  const gpu::LayoutTable& layouts = table_.Layouts(state.model);
  const uint64_t base = layouts.Members(state.occupied);
  std::vector<std::pair<size_t, uint64_t>> kinds;  // slices and their placements
  for (size_t s = 0; s < problem_.slices.size(); ++s) {
    const gpu::ProfileId profile = problem_.slices[s].profile[state.model];
    if (profile != kNoProfile) kinds.emplace_back(s, layouts.PlacementsOf(profile));
  }
  std::set<Counts> sets;  // many layouts have equal counts
  Counts counts(problem_.slices.size());
  for (size_t layout = 0; layout < layouts.size(); ++layout) {
    const uint64_t members = layouts.Members(static_cast<gpu::LayoutId>(layout));
    const uint64_t added = members & ~base;
    if ((base & ~members) != 0 || (added & ~state.usable) != 0) continue;
    // Not maximal: another layout contains it.
    if ((layouts.Addable(static_cast<gpu::LayoutId>(layout)) & state.usable) != 0) continue;
    for (const auto& [slice, placements] : kinds) {
      counts[slice] = static_cast<uint8_t>(std::popcount(added & placements));
    }
    sets.insert(counts);
  }
  std::vector<Counts> maximal(sets.begin(), sets.end());
  KeepMaximal(maximal);
  return maximal;
}

MostOnGpu MaximalSets::WorthOf(std::span<const SliceCount> slices) const {
  MostOnGpu worth;
  for (const SliceCount& s : slices) {
    worth.size += int64_t{s.count} * problem_.slices[s.slice].size;
    worth.compute += int64_t{s.count} * problem_.slices[s.slice].compute;
  }
  return worth;
}

const MostOnGpu& MaximalSets::MostOn(GpuStateId id) {
  if (id >= most_.size()) most_.resize(table_.size());
  if (!most_[id].each.empty() || problem_.slices.empty()) return most_[id];
  MostOnGpu most;
  most.each.resize(problem_.slices.size());
  const GpuState state = table_.Get(id);
  for (const GpuState& way : table_.SharingModesOf(state)) {
    if (table_.IsCounted(way.model)) {
      AddMostShares(way, most);
    } else if (state.alternative == kNoModel) {
      AddMostOf(*Of(id), most);
    } else {
      AddMostOf(OfLayout(way), most);
    }
  }
  return most_[id] = std::move(most);
}

void MaximalSets::AddMostShares(const GpuState& state, MostOnGpu& most) const {
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

void MaximalSets::AddMostOf(const std::vector<Counts>& sets, MostOnGpu& most) const {
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

}  // namespace nos::planning
