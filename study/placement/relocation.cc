#include "study/placement/relocation.h"

#include <array>
#include <bit>
#include <utility>

namespace nos::study {
namespace {

constexpr int kNotFound = gpu::Fragmentation::kNeverFits;

template <typename Visit>
void ForEachBit(uint64_t bits, const Visit& visit) {
  for (; bits != 0; bits &= bits - 1) visit(static_cast<gpu::PlacementId>(std::countr_zero(bits)));
}

// A plan in terms of layouts; the GPUs of a layout are interchangeable until the plan is bound to
// real ones. GPU 0 takes the request.
struct Draft {
  struct Gpu {
    gpu::LayoutId before = 0, now = 0;
  };
  struct Step {
    uint8_t from = 0, to = 0;  // index into gpus
    gpu::PlacementId from_placement = 0, to_placement = 0;
  };
  std::array<Gpu, 4> gpus{};
  std::array<Step, 2> steps{};
  uint8_t gpu_count = 0, step_count = 0;
  gpu::PlacementId request = 0;
  int loss = kNotFound;

  bool found() const { return loss < kNotFound; }
};

class Search {
 public:
  explicit Search(const Fleet& fleet)
      : fleet_(fleet),
        rule_(fleet.rule()),
        table_(rule_.layouts()),
        single_(table_.profile_count()) {}

  std::optional<Relocation> Run(gpu::ProfileId profile, int max_moves) {
    if (max_moves < 1) return std::nullopt;
    Draft best = Single(profile);
    if (!best.found() && max_moves > 1) best = Pair(profile);
    if (!best.found() && max_moves > 1) best = Chain(profile);
    if (!best.found()) return std::nullopt;
    return Bind(best);
  }

 private:
  gpu::ProfileId ProfileOf(gpu::PlacementId placement) const {
    return table_.placements()[placement].profile;
  }

  // Starts a draft for each placement of the profile on a GPU from which instances were removed.
  template <typename Visit>
  void ForEachStart(gpu::LayoutId before, gpu::LayoutId freed, gpu::ProfileId profile,
                    const Visit& visit) const {
    ForEachBit(table_.Addable(freed) & table_.PlacementsOf(profile),
               [&](gpu::PlacementId placement) {
                 Draft draft;
                 draft.request = placement;
                 draft.gpus[0] = {before, table_.Add(freed, placement)};
                 draft.gpu_count = 1;
                 draft.loss = rule_.Potential(before) - rule_.Potential(draft.gpus[0].now);
                 visit(draft);
               });
  }

  // Finds the best place for an instance removed from GPU 0. False if there is none. `kept`: a
  // layout of which one more GPU is reserved, or kIllegal.
  bool Settle(Draft& draft, gpu::PlacementId taken, gpu::LayoutId kept) const {
    const gpu::ProfileId profile = ProfileOf(taken);
    std::array<gpu::LayoutId, 5> reserved{kept};
    for (size_t g = 0; g < draft.gpu_count; ++g) reserved[g + 1] = draft.gpus[g].before;
    const gpu::LayoutId other =
        fleet_.BestLayout(profile, std::span(reserved).first(draft.gpu_count + 1U));
    uint8_t chosen = draft.gpu_count;
    int loss = other == gpu::LayoutTable::kIllegal ? kNotFound : rule_.Loss(other, profile);
    for (uint8_t g = 0; g < draft.gpu_count; ++g) {
      if (rule_.Loss(draft.gpus[g].now, profile) >= loss) continue;
      loss = rule_.Loss(draft.gpus[g].now, profile);
      chosen = g;
    }
    if (loss == kNotFound) return false;
    if (chosen == draft.gpu_count) draft.gpus[draft.gpu_count++] = {other, other};
    gpu::LayoutId& now = draft.gpus[chosen].now;
    const gpu::PlacementId placement = rule_.Best(now, profile);
    now = table_.Add(now, placement);
    draft.steps[draft.step_count++] = {0, chosen, taken, placement};
    draft.loss += loss;
    return true;
  }

  // The instance that fits fewer times on a GPU is harder to place, so it is placed first.
  bool SettleBoth(Draft& draft, gpu::PlacementId a, gpu::PlacementId b) const {
    const auto fit = [this](gpu::PlacementId p) {
      return table_.Copies(gpu::LayoutTable::kEmpty, ProfileOf(p));
    };
    if (fit(b) < fit(a)) std::swap(a, b);
    return Settle(draft, a, gpu::LayoutTable::kIllegal) &&
           Settle(draft, b, gpu::LayoutTable::kIllegal);
  }

  // Moves one instance, without using one GPU of layout `kept`.
  Draft SingleExcept(gpu::ProfileId profile, gpu::LayoutId kept) const {
    Draft best;
    for (const gpu::LayoutId before : fleet_.Present()) {
      if (before == kept && fleet_.Count(before) == 1) continue;
      ForEachBit(table_.Members(before), [&](gpu::PlacementId taken) {
        const gpu::LayoutId freed = table_.Remove(before, taken);
        ForEachStart(before, freed, profile, [&](Draft draft) {
          if (Settle(draft, taken, kept) && draft.loss < best.loss) best = draft;
        });
      });
    }
    return best;
  }

  const Draft& Single(gpu::ProfileId profile) {
    std::optional<Draft>& known = single_[profile];
    if (!known) known = SingleExcept(profile, gpu::LayoutTable::kIllegal);
    return *known;
  }

  // Moves two instances of one GPU.
  Draft Pair(gpu::ProfileId profile) const {
    Draft best;
    for (const gpu::LayoutId before : fleet_.Present()) {
      ForEachBit(table_.Members(before), [&](gpu::PlacementId first) {
        const uint64_t later = table_.Members(before) & ~((uint64_t{2} << first) - 1);
        ForEachBit(later, [&](gpu::PlacementId second) {
          const gpu::LayoutId freed = table_.Remove(table_.Remove(before, first), second);
          ForEachStart(before, freed, profile, [&](Draft draft) {
            if (!SettleBoth(draft, first, second)) return;
            if (draft.loss < best.loss) best = draft;
          });
        });
      });
    }
    return best;
  }

  // Moves one instance to the place of another one on a second GPU, which moves, too.
  Draft Chain(gpu::ProfileId profile) {
    Draft best;
    for (const gpu::LayoutId before : fleet_.Present()) {
      ForEachBit(table_.Members(before), [&](gpu::PlacementId taken) {
        const gpu::LayoutId freed = table_.Remove(before, taken);
        if (table_.Copies(freed, profile) == 0) return;
        const Draft second = SecondLeg(ProfileOf(taken), before);
        if (!second.found()) return;
        ForEachStart(before, freed, profile, [&](const Draft& draft) {
          if (draft.loss + second.loss < best.loss) best = Joined(draft, taken, second);
        });
      });
    }
    return best;
  }

  // The best single move for the profile that does not use one GPU of layout `kept`.
  Draft SecondLeg(gpu::ProfileId profile, gpu::LayoutId kept) {
    const Draft& known = Single(profile);
    size_t used = 0;
    for (size_t g = 0; g < known.gpu_count; ++g) used += known.gpus[g].before == kept ? 1 : 0;
    return fleet_.Count(kept) > used ? known : SingleExcept(profile, kept);
  }

  static Draft Joined(const Draft& first, gpu::PlacementId taken, const Draft& second) {
    Draft joined = first;
    for (uint8_t g = 0; g < second.gpu_count; ++g) joined.gpus[1 + g] = second.gpus[g];
    joined.gpu_count = static_cast<uint8_t>(1 + second.gpu_count);
    const Draft::Step& leg = second.steps[0];
    joined.steps[0] = {0, 1, taken, second.request};
    joined.steps[1] = {1, static_cast<uint8_t>(leg.to + 1), leg.from_placement, leg.to_placement};
    joined.step_count = 2;
    joined.loss = first.loss + second.loss;
    return joined;
  }

  // Assigns real GPUs: different ones for entries with the same layout.
  Relocation Bind(const Draft& draft) const {
    std::array<uint32_t, 4> gpus{};
    for (size_t g = 0; g < draft.gpu_count; ++g) {
      const gpu::LayoutId layout = draft.gpus[g].before;
      size_t earlier = 0;
      for (size_t h = 0; h < g; ++h) earlier += draft.gpus[h].before == layout ? 1 : 0;
      gpus[g] = fleet_.Gpu(layout, earlier);
    }
    Relocation relocation{{gpus[0], draft.request}, {}, draft.loss};
    for (size_t i = 0; i < draft.step_count; ++i) {
      const Draft::Step& step = draft.steps[i];
      relocation.moves.push_back(
          {{gpus[step.from], step.from_placement}, {gpus[step.to], step.to_placement}});
    }
    return relocation;
  }

  const Fleet& fleet_;
  const gpu::Fragmentation& rule_;
  const gpu::LayoutTable& table_;
  std::vector<std::optional<Draft>> single_;  // by profile
};

}  // namespace

std::optional<Relocation> FindRelocation(const Fleet& fleet, gpu::ProfileId profile,
                                         int max_moves) {
  return Search(fleet).Run(profile, max_moves);
}

}  // namespace nos::study
