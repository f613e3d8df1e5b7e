// The choices of each policy, and the counts of a host.
#include "study/churn/chooser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/random.h"
#include "base/text.h"
#include "study/churn/host.h"

namespace nos::study {
namespace {

const gpu::Model& A100() { return *gpu::Catalogue::Builtin().FindByName("A100-40GB"); }

ChurnOptions Of(ChurnPolicy policy, int gpus) {
  ChurnOptions options;
  options.model = &A100();
  options.gpus = gpus;
  options.policy = policy;
  return options;
}

gpu::LayoutId Layout(std::string_view text) {
  std::vector<gpu::Placement> placements;
  for (const std::string_view part : Split(text, ' ')) {
    if (!part.empty()) placements.push_back(A100().ParsePlacement(part).value());
  }
  return A100().layouts().FromPlacements(placements).value();
}

// "1: 1g.5gb@4": GPU and placement chosen for a request, given the layouts of the GPUs.
std::string Chosen(ChurnPolicy policy, const std::vector<std::string>& gpus,
                   std::string_view profile) {
  const ChurnOptions options = Of(policy, static_cast<int>(gpus.size()));
  const auto chooser = MakeScanChooser(options, LoadMix("uniform", A100()).value());
  for (uint32_t g = 0; g < gpus.size(); ++g) chooser->Set(g, Layout(gpus[g]));
  const auto chosen = chooser->Choose(*A100().FindProfile(profile));
  if (!chosen) return "nowhere";
  const gpu::Placement at = A100().layouts().placements()[chosen->spot.placement];
  return fmt::format("{}: {}", chosen->spot.gpu, A100().PlacementName(at));
}

TEST(FirstFit, ChoosesLowestStartOfFirstFittingGpu) {
  constexpr auto kPolicy = ChurnPolicy::kFirstFit;
  EXPECT_EQ(Chosen(kPolicy, {"", "3g.20gb@0"}, "1g.5gb"), "0: 1g.5gb@0");
  EXPECT_EQ(Chosen(kPolicy, {"", ""}, "3g.20gb"), "0: 3g.20gb@0");
  EXPECT_EQ(Chosen(kPolicy, {"7g.40gb@0", "1g.5gb@0", ""}, "2g.10gb"), "1: 2g.10gb@2");
  EXPECT_EQ(Chosen(kPolicy, {"7g.40gb@0", "1g.5gb@0"}, "7g.40gb"), "nowhere");
}

TEST(BestFit, ChoosesGpuWithFewestFreeSlots) {
  constexpr auto kPolicy = ChurnPolicy::kBestFit;
  EXPECT_EQ(Chosen(kPolicy, {"", "3g.20gb@0", "1g.5gb@0"}, "1g.5gb"), "1: 1g.5gb@4");
  EXPECT_EQ(Chosen(kPolicy, {"", "3g.20gb@4", "3g.20gb@0"}, "2g.10gb"), "1: 2g.10gb@0");
  EXPECT_EQ(Chosen(kPolicy, {"", "4g.20gb@0 2g.10gb@4"}, "2g.10gb"), "0: 2g.10gb@0");
}

// The first GPU that fits; there the start that leaves the longest free run, then most placements.
TEST(LargestFreeRun, KeepsLongestFreeRunOfFirstFittingGpu) {
  constexpr auto kPolicy = ChurnPolicy::kLargestFreeRun;
  EXPECT_EQ(Chosen(kPolicy, {"", "3g.20gb@0"}, "1g.5gb"), "0: 1g.5gb@0");
  EXPECT_EQ(Chosen(kPolicy, {"1g.5gb@4"}, "1g.5gb"), "0: 1g.5gb@5");  // 0 to 3 remain free
  EXPECT_EQ(Chosen(kPolicy, {"1g.5gb@2 3g.20gb@4"}, "1g.5gb"),
            "0: 1g.5gb@3");  // 0 and 1 remain free
  // Starts 0 and 4 both leave four free slots, but 4g fits only into slots 0 to 3.
  EXPECT_EQ(Chosen(kPolicy, {"7g.40gb@0", "1g.5gb@6"}, "2g.10gb"), "1: 2g.10gb@4");
}

TEST(PlacementsLost, ChoosesGpuThatLosesFewestPlacements) {
  constexpr auto kPolicy = ChurnPolicy::kPlacementsLost;
  EXPECT_EQ(Chosen(kPolicy, {"", "3g.20gb@0 2g.10gb@4"}, "1g.5gb"), "1: 1g.5gb@6");
  EXPECT_EQ(Chosen(kPolicy, {"", "3g.20gb@0"}, "3g.20gb"), "1: 3g.20gb@4");
}

// Implements the rules again, directly from their descriptions, with a set of slots and a count of
// placements. A smaller `Lost` is better; ties go to the lower GPU, then to the lower start.
struct Rule {
  ChurnPolicy policy;

  static int Longest(const std::set<int>& used) {
    int longest = 0;
    for (int from = 0; from < 8; ++from) {
      int to = from;
      while (to < 8 && !used.contains(to)) ++to;
      longest = std::max(longest, to - from);
    }
    return longest;
  }

  static std::set<int> Used(gpu::LayoutId layout) {
    std::set<int> used;
    const gpu::LayoutTable& table = A100().layouts();
    for (size_t p = 0; p < table.placements().size(); ++p) {
      if ((table.Members(layout) >> p & 1) == 0) continue;
      const gpu::Placement& at = table.placements()[p];
      for (int s = 0; s < A100().profile(at.profile).slots; ++s) used.insert(at.start + s);
    }
    return used;
  }

  // Counts the five profiles of the mix.
  static int Addable(gpu::LayoutId layout) {
    int count = 0;
    for (const char* name : {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"}) {
      const gpu::ProfileId profile = *A100().FindProfile(name);
      for (const uint8_t start : A100().profile(profile).starts) {
        const auto at = *A100().layouts().Find({profile, start});
        count += A100().layouts().Add(layout, at) != gpu::LayoutTable::kIllegal;
      }
    }
    return count;
  }

  std::vector<int> Lost(int gpu, gpu::LayoutId before, gpu::LayoutId after) const {
    switch (policy) {
      case ChurnPolicy::kBestFit:
        return {-static_cast<int>(Used(before).size()), gpu};
      case ChurnPolicy::kLargestFreeRun:
        return {gpu, -Longest(Used(after)), -Addable(after)};
      case ChurnPolicy::kPlacementsLost:
        return {Addable(before) - Addable(after), gpu};
      default:
        return {gpu};
    }
  }
};

TEST(ScanChoosers, FollowTheirRulesOnEveryPairOfLayouts) {
  const gpu::LayoutTable& table = A100().layouts();
  for (const ChurnPolicy policy : {ChurnPolicy::kFirstFit, ChurnPolicy::kBestFit,
                                   ChurnPolicy::kLargestFreeRun, ChurnPolicy::kPlacementsLost}) {
    const Rule rule{policy};
    const auto chooser = MakeScanChooser(Of(policy, 2), LoadMix("uniform", A100()).value());
    Random random(1);
    for (int round = 0; round < 2000; ++round) {
      gpu::LayoutId layouts[2];
      for (uint32_t g = 0; g < 2; ++g) {
        layouts[g] = static_cast<gpu::LayoutId>(random.Below(table.size()));
        chooser->Set(g, layouts[g]);
      }
      const char* const names[] = {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"};
      const gpu::ProfileId profile = *A100().FindProfile(names[random.Below(5)]);
      std::map<std::vector<int>, Spot> ways;  // the first of equal spots is kept
      for (uint32_t g = 0; g < 2; ++g) {
        for (const uint8_t start : A100().profile(profile).starts) {
          const auto at = *table.Find({profile, start});
          const gpu::LayoutId after = table.Add(layouts[g], at);
          if (after == gpu::LayoutTable::kIllegal) continue;
          ways.emplace(rule.Lost(static_cast<int>(g), layouts[g], after), Spot{g, at});
        }
      }
      const auto chosen = chooser->Choose(profile);
      ASSERT_EQ(chosen.has_value(), !ways.empty());
      if (!chosen) continue;
      ASSERT_EQ(chosen->spot.gpu, ways.begin()->second.gpu) << PolicyName(policy);
      ASSERT_EQ(chosen->spot.placement, ways.begin()->second.placement) << PolicyName(policy);
    }
  }
}

// Executes the decisions of a chooser independently of the host, and tracks the spot of every job.
class Shadow {
 public:
  explicit Shadow(const ChurnOptions& options)
      : chooser_(MakeNosChooser(options)),
        layouts_(static_cast<size_t>(options.gpus), gpu::LayoutTable::kEmpty) {}

  // Number of instances that move for the job; nullopt if it is rejected.
  std::optional<int64_t> Admit(JobId job, gpu::ProfileId profile) {
    const auto decision = chooser_->Choose(profile);
    if (!decision) return std::nullopt;
    std::vector<JobId> moved;
    for (const Move& move : decision->moves) {
      for (const auto& [other, spot] : spots_) {
        if (spot.gpu == move.from.gpu && spot.placement == move.from.placement) {
          moved.push_back(other);
        }
      }
    }
    for (const JobId other : moved) Remove(other);
    for (size_t i = 0; i < moved.size(); ++i) Add(moved[i], decision->moves[i].to);
    Add(job, decision->spot);
    return static_cast<int64_t>(decision->moves.size());
  }

  void Remove(JobId job) {
    const Spot spot = spots_.at(job);
    spots_.erase(job);
    Set(spot.gpu, A100().layouts().Remove(layouts_[spot.gpu], spot.placement));
  }

 private:
  void Add(JobId job, Spot spot) {
    spots_[job] = spot;
    Set(spot.gpu, A100().layouts().Add(layouts_[spot.gpu], spot.placement));
  }
  void Set(uint32_t gpu, gpu::LayoutId layout) {
    layouts_[gpu] = layout;
    chooser_->Set(gpu, layout);
  }

  std::unique_ptr<Chooser> chooser_;
  std::vector<gpu::LayoutId> layouts_;
  std::map<JobId, Spot> spots_;
};

TEST(Host, CountsMovedInstances) {
  ChurnOptions options = Of(ChurnPolicy::kNos, 3);
  options.moves = 2;
  const auto host = MakeHost(options, LoadMix("uniform", A100()).value()).value();
  Shadow shadow(options);
  Random random(1);
  std::vector<JobId> running;
  int64_t moves = 0, twice = 0;
  const char* const names[] = {"1g.5gb", "1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb"};
  for (JobId job = 0; job < 2000; ++job) {
    const gpu::ProfileId profile = *A100().FindProfile(names[random.Below(5)]);
    const auto expected = shadow.Admit(job, profile);
    ASSERT_EQ(host->Admit(job, profile).value(), expected.has_value());
    if (expected) running.push_back(job);
    moves += expected.value_or(0);
    twice += expected.value_or(0) == 2;
    ASSERT_EQ(host->moves(), moves);
    while (!running.empty() && (!expected || random.Chance(0.3))) {
      const size_t at = random.Below(running.size());
      host->Release(running[at]);
      shadow.Remove(running[at]);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(at));
      if (random.Chance(0.5)) break;
    }
  }
  EXPECT_GT(twice, 0) << "no request moved two instances";
}

}  // namespace
}  // namespace nos::study
