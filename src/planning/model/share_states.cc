#include "planning/model/share_states.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace nos::planning {

uint64_t FreeShares::Intern(std::vector<gpu::ProfileId> profiles) {
  std::ranges::sort(profiles);
  const auto [at, fresh] = numbers_.try_emplace(std::move(profiles), all_.size());
  if (fresh) all_.push_back(&at->first);
  return at->second;
}

bool FreeShares::Has(uint64_t number, gpu::ProfileId profile) const {
  return std::ranges::binary_search(Get(number), profile);
}

uint64_t FreeShares::Without(uint64_t number, gpu::ProfileId profile) {
  std::vector<gpu::ProfileId> rest = Get(number);
  rest.erase(std::ranges::find(rest, profile));
  return Intern(std::move(rest));
}

uint64_t FreeShares::Kept(const gpu::Model& model, Taken taken, uint64_t number) {
  const std::vector<gpu::ProfileId>& all = Get(number);
  std::vector<gpu::ProfileId> kept;
  for (const gpu::ProfileId profile : all) {
    if (CopiesOfShare(model, taken, {}, profile) == 0) break;
    taken.slots += model.profile(profile).slots;
    ++taken.shares;
    kept.push_back(profile);
  }
  return kept.size() == all.size() ? number : Intern(std::move(kept));
}

int CopiesOfShare(const gpu::Model& model, Taken taken, Open open, gpu::ProfileId profile) {
  const int left = std::max(0, model.slots() - taken.slots - open.kept);
  return std::min(left / model.profile(profile).slots, open.Numbers(model, taken));
}

namespace {

constexpr size_t kMaxStepsPerSet = 32;

class SetWalk {
 public:
  using Set = std::vector<uint8_t>;

  SetWalk(const gpu::Model& model, Open open,
          std::span<const std::optional<gpu::ProfileId>> profiles, std::span<const int> limits,
          size_t most)
      : model_(model), open_(open), profiles_(profiles), limits_(limits), most_(most) {
    for (size_t i = 0; i < profiles.size(); ++i) {
      if (profiles[i] && limits[i] > 0) kinds_.push_back(i);
    }
    // Small shares last: they fill the remaining space.
    std::ranges::sort(kinds_, [&](size_t a, size_t b) { return SizeOf(a) > SizeOf(b); });
    set_.resize(profiles.size());
  }

  std::optional<std::vector<Set>> From(Taken taken) {
    Visit(0, taken);
    if (IsTooMuch()) return std::nullopt;
    return std::move(sets_);
  }

 private:
  bool IsTooMuch() const { return sets_.size() > most_ || steps_ > kMaxStepsPerSet * most_; }
  int SizeOf(size_t kind) const {
    const std::optional<gpu::ProfileId>& profile = profiles_[kind];
    return profile ? model_.profile(*profile).slots : 0;
  }
  int Room(size_t kind, Taken taken) const {
    const int more = std::min<int>(limits_[kind], std::numeric_limits<uint8_t>::max()) - set_[kind];
    const std::optional<gpu::ProfileId>& profile = profiles_[kind];
    return profile ? std::min(more, CopiesOfShare(model_, taken, open_, *profile)) : 0;
  }

  void Visit(size_t next, Taken taken) {
    ++steps_;
    if (IsTooMuch()) return;
    if (next == kinds_.size()) {
      const bool full =
          std::ranges::all_of(kinds_, [&](size_t kind) { return Room(kind, taken) == 0; });
      if (full) sets_.push_back(set_);
      return;
    }
    const size_t kind = kinds_[next];
    const int room = Room(kind, taken);
    // The last kind takes all it can, since the set would not be maximal otherwise.
    for (int n = room; n >= (next + 1 == kinds_.size() ? room : 0); --n) {
      set_[kind] = static_cast<uint8_t>(n);
      Visit(next + 1, {taken.slots + n * SizeOf(kind), taken.shares + n});
    }
    set_[kind] = 0;
  }

  const gpu::Model& model_;
  const Open open_;
  const std::span<const std::optional<gpu::ProfileId>> profiles_;
  const std::span<const int> limits_;
  const size_t most_;
  std::vector<size_t> kinds_;
  Set set_;
  std::vector<Set> sets_;
  size_t steps_ = 0;
};

}  // namespace

std::optional<std::vector<std::vector<uint8_t>>> LargestShareSets(
    const gpu::Model& model, Taken taken, Open open,
    std::span<const std::optional<gpu::ProfileId>> profiles, std::span<const int> limits,
    size_t most) {
  return SetWalk(model, open, profiles, limits, most).From(taken);
}

}  // namespace nos::planning
