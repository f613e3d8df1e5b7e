#include "study/placement/fleet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/random.h"
#include "study/placement/relocation.h"

namespace nos::study {
namespace {

const gpu::Model& Named(const char* name) { return *gpu::Catalogue::Builtin().FindByName(name); }

// Adds or removes a random instance on a random GPU.
void Step(Fleet& fleet, size_t gpus, double add, Random& random) {
  const auto gpu = static_cast<uint32_t>(random.Below(gpus));
  const gpu::LayoutTable& table = fleet.rule().layouts();
  const auto placement = static_cast<gpu::PlacementId>(random.Below(table.placements().size()));
  const gpu::LayoutId now = fleet.layout(gpu);
  const gpu::LayoutId next =
      random.Chance(add) ? table.Add(now, placement) : table.Remove(now, placement);
  if (next != gpu::LayoutTable::kIllegal) fleet.Set(gpu, next);
}

TEST(Fleet, ChoosesTheLeastLossOfAllGpus) {
  for (const char* name : {"A30", "A100-40GB", "RTX-PRO-6000"}) {
    const gpu::Fragmentation rule(Named(name));
    constexpr size_t kGpus = 12;
    Fleet fleet(rule, kGpus);
    Random random(7);
    for (int i = 0; i < 3000; ++i) {
      Step(fleet, kGpus, 0.7, random);
      const auto profile =
          static_cast<gpu::ProfileId>(random.Below(rule.layouts().profile_count()));
      int least = gpu::Fragmentation::kNeverFits;
      for (uint32_t g = 0; g < kGpus; ++g) {
        least = std::min(least, rule.Loss(fleet.layout(g), profile));
      }
      const auto spot = fleet.Choose(profile);
      ASSERT_EQ(spot.has_value(), least != gpu::Fragmentation::kNeverFits);
      if (!spot) continue;
      ASSERT_EQ(rule.Loss(fleet.layout(spot->gpu), profile), least);
      ASSERT_EQ(rule.Best(fleet.layout(spot->gpu), profile), spot->placement);
    }
  }
}

int PotentialOf(const Fleet& fleet, size_t gpus) {
  int sum = 0;
  for (uint32_t g = 0; g < gpus; ++g) sum += fleet.rule().Potential(fleet.layout(g));
  return sum;
}

// Executes a plan and checks that every step is possible.
void Carry(Fleet& fleet, const Relocation& plan, gpu::ProfileId profile) {
  const gpu::LayoutTable& table = fleet.rule().layouts();
  std::vector<gpu::ProfileId> taken;
  for (const Move& move : plan.moves) {
    const gpu::LayoutId less = table.Remove(fleet.layout(move.from.gpu), move.from.placement);
    ASSERT_NE(less, gpu::LayoutTable::kIllegal);
    fleet.Set(move.from.gpu, less);
    ASSERT_EQ(table.placements()[move.from.placement].profile,
              table.placements()[move.to.placement].profile);
  }
  for (const Move& move : plan.moves) {
    const gpu::LayoutId more = table.Add(fleet.layout(move.to.gpu), move.to.placement);
    ASSERT_NE(more, gpu::LayoutTable::kIllegal);
    fleet.Set(move.to.gpu, more);
  }
  const gpu::LayoutId last = table.Add(fleet.layout(plan.spot.gpu), plan.spot.placement);
  ASSERT_NE(last, gpu::LayoutTable::kIllegal);
  ASSERT_EQ(table.placements()[plan.spot.placement].profile, profile);
  fleet.Set(plan.spot.gpu, last);
}

// True if removing one instance makes space for the profile and the instance fits somewhere else.
bool OneMoveWorks(const Fleet& fleet, size_t gpus, gpu::ProfileId profile) {
  const gpu::LayoutTable& table = fleet.rule().layouts();
  for (uint32_t g = 0; g < gpus; ++g) {
    for (uint64_t rest = table.Members(fleet.layout(g)); rest != 0; rest &= rest - 1) {
      const auto taken = static_cast<gpu::PlacementId>(std::countr_zero(rest));
      const gpu::ProfileId moved = table.placements()[taken].profile;
      const gpu::LayoutId freed = table.Remove(fleet.layout(g), taken);
      for (size_t i = 0; i < table.placements().size(); ++i) {
        if (table.placements()[i].profile != profile) continue;
        const gpu::LayoutId now = table.Add(freed, static_cast<gpu::PlacementId>(i));
        if (now == gpu::LayoutTable::kIllegal) continue;
        if (table.Copies(now, moved) > 0) return true;
        for (uint32_t h = 0; h < gpus; ++h) {
          if (h != g && table.Copies(fleet.layout(h), moved) > 0) return true;
        }
      }
    }
  }
  return false;
}

TEST(Relocation, PlansAreValidAndSingleMovesAreFound) {
  for (const char* name : {"A30", "A100-40GB", "RTX-PRO-6000"}) {
    const gpu::Fragmentation rule(Named(name));
    constexpr size_t kGpus = 4;
    Fleet fleet(rule, kGpus);
    Random random(11);
    std::multiset<size_t> sizes;
    for (int i = 0; i < 20'000; ++i) {
      Step(fleet, kGpus, 0.65, random);
      const auto profile =
          static_cast<gpu::ProfileId>(random.Below(rule.layouts().profile_count()));
      if (fleet.Choose(profile)) continue;
      const auto single = FindRelocation(fleet, profile, 1);
      ASSERT_EQ(single.has_value(), OneMoveWorks(fleet, kGpus, profile));
      const auto plan = FindRelocation(fleet, profile, 2);
      ASSERT_FALSE(FindRelocation(fleet, profile, 0).has_value());
      if (!plan) continue;
      ASSERT_LE(plan->moves.size(), single ? 1U : 2U);
      sizes.insert(plan->moves.size());
      const int before = PotentialOf(fleet, kGpus);
      Carry(fleet, *plan, profile);
      if (HasFatalFailure()) return;
      ASSERT_EQ(before - PotentialOf(fleet, kGpus), plan->loss);
    }
    EXPECT_GT(sizes.count(1), 20U) << name;
    EXPECT_GT(sizes.count(2), 20U) << name;
  }
}

gpu::LayoutId LayoutOf(const gpu::Model& model, const std::vector<std::string>& placements) {
  std::vector<gpu::Placement> all;
  for (const std::string& text : placements) all.push_back(model.ParsePlacement(text).value());
  return model.layouts().FromPlacements(all).value();
}

TEST(Relocation, MovesTwoInstancesOfOneGpu) {
  const gpu::Model& model = Named("A100-40GB");
  const gpu::Fragmentation rule(model);
  Fleet fleet(rule, 2);
  fleet.Set(0, LayoutOf(model, {"1g.5gb@0", "1g.5gb@6"}));
  fleet.Set(1, LayoutOf(model, {"4g.20gb@0"}));
  const auto plan = FindRelocation(fleet, *model.FindProfile("7g.40gb"), 2);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->spot.gpu, 0U);
  ASSERT_EQ(plan->moves.size(), 2U);
  for (const Move& move : plan->moves) EXPECT_EQ(move.to.gpu, 1U);
}

TEST(Relocation, ChainsTwoMoves) {
  // 4g needs the left half of GPU 0. The 3g there fits only on GPU 1 after its 2g has moved to GPU
  // 2.
  const gpu::Model& model = Named("A100-40GB");
  const gpu::Fragmentation rule(model);
  Fleet fleet(rule, 3);
  fleet.Set(0, LayoutOf(model, {"3g.20gb@0", "3g.20gb@4"}));
  fleet.Set(1, LayoutOf(model, {"2g.10gb@4", "4g.20gb@0"}));
  fleet.Set(2, LayoutOf(model, {"4g.20gb@0", "1g.5gb@6"}));
  const gpu::ProfileId wanted = *model.FindProfile("4g.20gb");
  EXPECT_FALSE(FindRelocation(fleet, wanted, 1).has_value());
  const auto plan = FindRelocation(fleet, wanted, 2);
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->spot.gpu, 0U);
  Carry(fleet, *plan, wanted);
}

}  // namespace
}  // namespace nos::study
