#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "gpu/fragmentation.h"
#include "study/churn/chooser.h"

namespace nos::study {
namespace {

using gpu::LayoutId;
using gpu::LayoutTable;
using gpu::PlacementId;
using gpu::ProfileId;

// Ranks placements: `gpu` compares GPUs, the others compare starts on one GPU. Less is better; ties
// go to the lower GPU index and the lower start.
struct Score {
  int gpu = 0, start1 = 0, start2 = 0;
  friend auto operator<=>(const Score&, const Score&) = default;
};

int LongestFreeRun(const LayoutTable& table, LayoutId layout, int slots) {
  int longest = 0;
  int run = 0;
  for (int i = 0; i < slots; ++i) {
    run = ((table.Slots(layout) >> i) & 1U) != 0 ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest;
}

class ScanChooser : public Chooser {
 public:
  ScanChooser(const ChurnOptions& options, const Mix& mix)
      : table_(options.model->layouts()),
        slots_(options.model->slots()),
        policy_(options.policy),
        layouts_(static_cast<size_t>(options.gpus), LayoutTable::kEmpty),
        choices_(table_.size() * table_.profile_count()) {
    for (const ProfileId p : gpu::PlainProfiles(*options.model)) counted_ |= table_.PlacementsOf(p);
    for (const MixEntry& entry : mix) counted_ |= table_.PlacementsOf(entry.profile);
    for (size_t s = 0; s < table_.size(); ++s) FillChoices(static_cast<LayoutId>(s));
  }

  std::optional<Relocation> Choose(ProfileId profile) override {
    std::optional<Relocation> best;
    int best_score = std::numeric_limits<int>::max();
    for (size_t gpu = 0; gpu < layouts_.size() && best_score > 0; ++gpu) {
      const Choice& choice = choices_[layouts_[gpu] * table_.profile_count() + profile];
      if (!choice.fits || choice.score.gpu >= best_score) continue;
      best_score = choice.score.gpu;
      best = Relocation{{static_cast<uint32_t>(gpu), choice.placement}, {}, 0};
    }
    return best;
  }

  void Set(uint32_t gpu, LayoutId layout) override { layouts_[gpu] = layout; }

 private:
  struct Choice {
    Score score;
    PlacementId placement = 0;
    bool fits = false;
  };

  int Counted(LayoutId layout) const { return std::popcount(table_.Addable(layout) & counted_); }

  Score ScoreOf(LayoutId before, LayoutId after) const {
    switch (policy_) {
      case ChurnPolicy::kBestFit:
        return {slots_ - std::popcount(table_.Slots(before)), 0, 0};
      case ChurnPolicy::kLargestFreeRun:
        return {0, -LongestFreeRun(table_, after, slots_), -Counted(after)};
      case ChurnPolicy::kPlacementsLost:
        return {Counted(before) - Counted(after), 0, 0};
      default:
        return {};  // first fit
    }
  }

  void FillChoices(LayoutId layout) {
    for (uint64_t rest = table_.Addable(layout); rest != 0; rest &= rest - 1) {
      const auto placement = static_cast<PlacementId>(std::countr_zero(rest));
      const ProfileId profile = table_.placements()[placement].profile;
      Choice& choice = choices_[layout * table_.profile_count() + profile];
      const Score score = ScoreOf(layout, table_.Add(layout, placement));
      if (choice.fits && score >= choice.score) continue;
      choice = {score, placement, true};
    }
  }

  const LayoutTable& table_;
  const int slots_;
  const ChurnPolicy policy_;
  std::vector<LayoutId> layouts_;  // by GPU
  std::vector<Choice> choices_;    // by layout and profile
  uint64_t counted_ = 0;           // placements that are counted as possible
};

}  // namespace

std::unique_ptr<Chooser> MakeScanChooser(const ChurnOptions& options, const Mix& mix) {
  return std::make_unique<ScanChooser>(options, mix);
}

}  // namespace nos::study
