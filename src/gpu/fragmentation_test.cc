#include "gpu/fragmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace nos::gpu {
namespace {

using ::testing::ElementsAre;

const Model& Named(const char* name) { return *Catalogue::Builtin().FindByName(name); }

std::vector<std::string> PlainNames(const char* model) {
  std::vector<std::string> names;
  for (const ProfileId p : PlainProfiles(Named(model))) {
    names.push_back(Named(model).profile(p).name);
  }
  return names;
}

TEST(PlainProfiles, SelectsOneProfilePerComputeSize) {
  EXPECT_THAT(PlainNames("A100-40GB"),
              ElementsAre("1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"));
  EXPECT_THAT(PlainNames("A30"), ElementsAre("1g.6gb", "2g.12gb", "4g.24gb"));
  EXPECT_THAT(PlainNames("RTX-PRO-6000"), ElementsAre("1g.24gb", "2g.48gb", "4g.96gb"));
}

TEST(Fragmentation, EmptyGpuTakesTheHighestStart) {
  const Model& model = Named("A100-40GB");
  const Fragmentation rule(model);
  EXPECT_EQ(rule.Potential(LayoutTable::kEmpty), 7 * 1 + 3 * 2 + 2 * 3 + 4 + 7);
  const auto best = [&](const char* profile) {
    const PlacementId at = rule.Best(LayoutTable::kEmpty, *model.FindProfile(profile));
    return model.PlacementName(model.layouts().placements()[at]);
  };
  EXPECT_EQ(best("1g.5gb"), "1g.5gb@6");
  EXPECT_EQ(best("2g.10gb"), "2g.10gb@4");
  EXPECT_EQ(best("3g.20gb"), "3g.20gb@4");
  EXPECT_EQ(best("7g.40gb"), "7g.40gb@0");
}

TEST(Fragmentation, NoPlacementLosesLessThanTheBest) {
  for (const auto& model : Catalogue::Builtin().models()) {
    const Fragmentation rule(*model);
    const LayoutTable& table = model->layouts();
    for (size_t i = 0; i < table.size(); ++i) {
      const auto s = static_cast<LayoutId>(i);
      for (size_t j = 0; j < table.placements().size(); ++j) {
        const LayoutId next = table.Add(s, static_cast<PlacementId>(j));
        if (next == LayoutTable::kIllegal) continue;
        const int loss = rule.Potential(s) - rule.Potential(next);
        ASSERT_GE(loss, 0);
        ASSERT_GE(loss, rule.Loss(s, table.placements()[j].profile));
      }
    }
  }
}

TEST(Fragmentation, PreferenceIsSortedAndComplete) {
  const Model& model = Named("A30");
  const Fragmentation rule(model);
  for (size_t p = 0; p < model.profiles().size(); ++p) {
    const auto profile = static_cast<ProfileId>(p);
    const auto order = rule.Preferred(profile);
    EXPECT_TRUE(
        std::ranges::is_sorted(order, {}, [&](LayoutId s) { return rule.Loss(s, profile); }));
    size_t fitting = 0;
    for (size_t s = 0; s < model.layouts().size(); ++s) {
      const auto layout = static_cast<LayoutId>(s);
      const bool fits = model.layouts().Copies(layout, profile) > 0;
      fitting += fits ? 1 : 0;
      EXPECT_EQ(rule.Rank(layout, profile) != Fragmentation::kNoRank, fits);
      EXPECT_EQ(rule.Best(layout, profile) != Fragmentation::kNoPlacement, fits);
    }
    EXPECT_EQ(order.size(), fitting);
  }
}

}  // namespace
}  // namespace nos::gpu
