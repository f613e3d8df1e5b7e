#include "sim/world/checks/satisfiable.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "gpu/shares.h"
#include "sim/specs.h"

namespace nos::sim {
namespace {

const gpu::Model& Unshared() {
  return *gpu::Catalogue::Builtin().FindSharingModes("A100-40GB+GPU+TIME-4");
}

std::vector<std::string> Slices(const std::vector<std::pair<std::string, size_t>>& asked) {
  std::vector<std::string> slices;
  for (const auto& [profile, count] : asked) {
    slices.insert(slices.end(), count, SliceResource(profile));
  }
  return slices;
}

// Checks against this number of unused hybrid GPUs.
bool FitOn(size_t gpus, const std::vector<std::pair<std::string, size_t>>& asked) {
  return CanHold(Slices(asked), std::vector(gpus, gpu::Occupancy(Unshared())),
                 std::vector<const gpu::Model*>(gpus, &gpu::SharesOf(39)));
}

// A search by single placements would try 2^28 states for these.
TEST(CanHold, RejectsExcessiveRequestsQuickly) {
  EXPECT_TRUE(FitOn(4, {{"1g.5gb", 28}}));
  EXPECT_FALSE(FitOn(4, {{"1g.5gb", 29}}));
  EXPECT_FALSE(FitOn(4, {{"1g.5gb", 101}}));
  EXPECT_FALSE(FitOn(4, {{"shared", 2}, {"1g.5gb", 101}}));
}

TEST(CanHold, UsesEachGpuInOneSharingMode) {
  EXPECT_TRUE(FitOn(4, {{"gpu", 1}, {"shared", 4}, {"39gb", 1}, {"3g.20gb", 2}}));
  EXPECT_FALSE(FitOn(3, {{"gpu", 1}, {"shared", 4}, {"39gb", 1}, {"3g.20gb", 2}}));
  EXPECT_TRUE(FitOn(2, {{"20gb", 2}, {"19gb", 2}}));
  EXPECT_FALSE(FitOn(2, {{"20gb", 3}}));
  EXPECT_TRUE(FitOn(0, {}));
  EXPECT_FALSE(FitOn(0, {{"gpu", 1}}));
  EXPECT_FALSE(FitOn(1, {{"nothing", 1}}));
}

// Reference implementation: places slice after slice at every possible start.
bool Place(const std::vector<std::string>& slices, size_t next, std::vector<gpu::Occupancy>& gpus,
           const std::vector<const gpu::Model*>& others) {
  if (next == slices.size()) return true;
  for (size_t g = 0; g < gpus.size(); ++g) {
    const gpu::Occupancy before = gpus[g];
    std::vector<gpu::Occupancy> ways = {before};
    if (before.taken_slots() == 0 && others[g] != nullptr) ways.emplace_back(*others[g]);
    for (const gpu::Occupancy& way : ways) {
      const auto profile = way.model().FindProfile(slices[next]);
      if (!profile) continue;
      for (const uint8_t start : way.model().profile(*profile).starts) {
        gpus[g] = way;
        if (!gpus[g].Add({*profile, start})) {
          gpus[g] = before;
          continue;
        }
        const bool placed = Place(slices, next + 1, gpus, others);
        gpus[g] = before;
        if (placed) return true;
        if (way.model().counted()) break;  // all starts are equivalent
      }
    }
  }
  return false;
}

TEST(CanHold, MatchesExhaustiveSearch) {
  const std::vector<std::string> profiles = {"1g.5gb",  "1g.10gb", "2g.10gb", "3g.20gb",
                                             "4g.20gb", "shared",  "gpu",     "15gb"};
  int held = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    std::vector<gpu::Occupancy> gpus(2, gpu::Occupancy(Unshared()));
    std::vector<const gpu::Model*> others;
    for (gpu::Occupancy& gpu : gpus) {
      others.push_back(random.Chance(0.5) ? &gpu::SharesOf(39) : nullptr);
      const auto& placements = Unshared().layouts().placements();
      for (uint64_t i = random.Below(3); i > 0; --i) {
        (void)gpu.Add(placements[random.Below(placements.size())]);
      }
    }
    std::vector<std::string> slices;
    for (uint64_t i = 1 + random.Below(4); i > 0; --i) {
      slices.push_back(SliceResource(profiles[random.Below(profiles.size())]));
    }
    const bool could = CanHold(slices, gpus, others);
    EXPECT_EQ(could, Place(slices, 0, gpus, others)) << "seed " << seed;
    held += could ? 1 : 0;
  }
  EXPECT_GT(held, 30);
  EXPECT_LT(held, 270);
}

}  // namespace
}  // namespace nos::sim
