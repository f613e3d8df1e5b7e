#include "gpu/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <ostream>
#include <set>

#include "gpu/catalogue.h"

namespace nos::gpu {
namespace {

// The shape of a built-in model, reduced to some of its profiles.
ModelShape ShapeOf(const std::string& model_name, const std::vector<std::string>& names,
                   bool with_engines = false) {
  const Model& model = *Catalogue::Builtin().FindByName(model_name);
  ModelShape shape;
  shape.slots = static_cast<uint8_t>(model.slots());
  if (with_engines) shape.engines = {4, 4, 4, 1};
  for (const std::string& name : names) {
    const Profile& p = model.profile(*model.FindProfile(name));
    ProfileShape profile{
        static_cast<uint8_t>(p.slots), static_cast<uint8_t>(p.max_count), p.starts, {}, 0};
    if (with_engines) {
      profile.engines = {p.engines.decode, p.engines.encode, p.engines.jpeg, p.engines.ofa};
    }
    shape.profiles.push_back(profile);
  }
  return shape;
}

std::vector<std::string> AllProfiles(const std::string& model_name) {
  std::vector<std::string> names;
  for (const Profile& p : Catalogue::Builtin().FindByName(model_name)->profiles()) {
    names.push_back(p.name);
  }
  return names;
}

struct Counts {
  size_t states = 0, maximal = 0, maximal_multisets = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
  friend void PrintTo(const Counts& c, std::ostream* out) {
    *out << c.states << " states, " << c.maximal << " maximal, " << c.maximal_multisets;
  }
};

std::vector<int> MultisetOf(const LayoutTable& table, LayoutId layout) {
  std::vector<int> counts;
  for (size_t p = 0; p < table.profile_count(); ++p) {
    counts.push_back(
        std::popcount(table.Members(layout) & table.PlacementsOf(static_cast<ProfileId>(p))));
  }
  return counts;
}

// Counts distinct multisets over the maximal layouts. Depending on starts, a GPU can be full at
// 1g+2g+3g although 2x1g+2g+3g exists.
Counts Count(const ModelShape& shape) {
  const LayoutTable table = LayoutTable::Build(shape).value();
  Counts counts{table.size(), 0, 0};
  std::set<std::vector<int>> multisets;
  for (size_t s = 0; s < table.size(); ++s) {
    if (!table.IsMaximal(static_cast<LayoutId>(s))) continue;
    ++counts.maximal;
    multisets.insert(MultisetOf(table, static_cast<LayoutId>(s)));
  }
  counts.maximal_multisets = multisets.size();
  return counts;
}

TEST(LayoutTable, LayoutCountsEqualPublishedOnes) {
  std::vector<std::string> names = {"1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"};
  EXPECT_EQ(Count(ShapeOf("A100-40GB", names)), (Counts{298, 19, 14}));
  names.emplace_back("1g.10gb");
  EXPECT_EQ(Count(ShapeOf("A100-40GB", names)), (Counts{723, 78, 38}));
  EXPECT_EQ(Count(ShapeOf("A30", {"1g.6gb", "2g.12gb", "4g.24gb"})), (Counts{26, 5, 4}));
  EXPECT_EQ(Count(ShapeOf("RTX-PRO-6000", {"1g.24gb", "2g.48gb", "4g.96gb"})), (Counts{26, 5, 4}));
}

TEST(LayoutTable, EightSlotModelsShareOneTable) {
  const LayoutTable* table = nullptr;
  for (const auto& model : Catalogue::Builtin().models()) {
    if (model->slots() != 8) continue;
    EXPECT_EQ(model->layouts().size(), 2319U) << model->name();
    EXPECT_EQ(model->layouts().placements().size(), 25U) << model->name();
    if (table == nullptr) table = &model->layouts();
    EXPECT_EQ(table, &model->layouts()) << "equal shapes share a table";
  }
}

TEST(LayoutTable, EngineTotalsLimitLayoutsOfRtxPro6000) {
  const auto names = AllProfiles("RTX-PRO-6000");
  EXPECT_EQ(LayoutTable::Build(ShapeOf("RTX-PRO-6000", names)).value().size(), 1249U);
  EXPECT_EQ(LayoutTable::Build(ShapeOf("RTX-PRO-6000", names, true)).value().size(), 1249U - 532U);
  const Model& model = *Catalogue::Builtin().FindByName("RTX-PRO-6000");
  EXPECT_EQ(model.layouts().size(), 1249U - 532U);
  const auto may_coexist = [&model](const char* a, const char* b) {
    return model.layouts()
        .FromPlacements(
            std::vector{model.ParsePlacement(a).value(), model.ParsePlacement(b).value()})
        .ok();
  };
  EXPECT_TRUE(may_coexist("1g.24gb+me.all@0", "1g.24gb-me@3"));
  EXPECT_FALSE(may_coexist("1g.24gb+me.all@0", "1g.24gb@3"));
  EXPECT_FALSE(may_coexist("1g.24gb+me.all@0", "2g.48gb+me.all@6"));
}

TEST(LayoutTable, TransitionsAreInverseAndLegal) {
  for (const auto& model : Catalogue::Builtin().models()) {
    const LayoutTable& table = model->layouts();
    for (size_t i = 0; i < table.size(); ++i) {
      const auto s = static_cast<LayoutId>(i);
      ASSERT_EQ(table.FromMembers(table.Members(s)), s);
      for (size_t j = 0; j < table.placements().size(); ++j) {
        const auto p = static_cast<PlacementId>(j);
        const bool addable = ((table.Addable(s) >> j) & 1U) != 0;
        ASSERT_EQ(addable, table.Add(s, p) != LayoutTable::kIllegal);
        if (!addable) continue;
        ASSERT_EQ(table.Remove(table.Add(s, p), p), s);
        ASSERT_TRUE(table.Keeps(table.Add(s, p), s));
        ASSERT_FALSE(table.Keeps(s, table.Add(s, p)));
      }
    }
  }
}

// Maximum number of instances of one profile, found by exhaustive search.
int CopiesBySearch(const LayoutTable& table, LayoutId layout, ProfileId profile) {
  int best = 0;
  for (size_t j = 0; j < table.placements().size(); ++j) {
    if (table.placements()[j].profile != profile) continue;
    const LayoutId next = table.Add(layout, static_cast<PlacementId>(j));
    if (next == LayoutTable::kIllegal) continue;
    best = std::max(best, 1 + CopiesBySearch(table, next, profile));
  }
  return best;
}

TEST(LayoutTable, CopiesIsMaximumThatFits) {
  for (const char* name :
       {"A30", "A100-40GB", "RTX-PRO-6000", "A30+2g.12gb.mps2+4g.24gb.mps4+GPU"}) {
    const Model* model = Catalogue::Builtin().FindByName(name);
    if (model == nullptr) model = Catalogue::Builtin().FindSharingModes(name);
    ASSERT_NE(model, nullptr) << name;
    const LayoutTable& table = model->layouts();
    for (size_t s = 1; s < table.size(); s += 7) {
      for (size_t p = 0; p < table.profile_count(); ++p) {
        const auto layout = static_cast<LayoutId>(s);
        const auto profile = static_cast<ProfileId>(p);
        ASSERT_EQ(table.Copies(layout, profile), CopiesBySearch(table, layout, profile));
      }
    }
  }
}

TEST(LayoutTable, AllowedAndForbiddenGeometriesRestrictLayouts) {
  ModelShape shape = ShapeOf("A30", {"1g.6gb", "2g.12gb", "4g.24gb"});
  shape.allowed_geometries = {{0, 2, 0}, {0, 0, 1}};
  EXPECT_EQ(LayoutTable::Build(shape).value().size(), 5U);  // empty, 2g@0, 2g@2, both, 4g
  shape.allowed_geometries.clear();
  shape.forbidden_geometries = {{1, 0, 0}, {0, 2, 0}};
  EXPECT_EQ(LayoutTable::Build(shape).value().size(), 4U);  // empty, 2g@0, 2g@2, 4g
}

// Profile 1 is half of profile 0. Profile 0 needs an engine, of which the GPU has one.
ModelShape WithParts() {
  ModelShape shape;
  shape.slots = 4;
  shape.engines = {1};
  shape.profiles = {{2, 2, {0, 2}, {1}, 0}, {1, 4, {0, 1, 2, 3}, {0}, 0, 0}, {1, 1, {3}, {0}, 0}};
  return shape;
}

TEST(LayoutTable, DividedInstanceCountsOnceForLimits) {
  ModelShape shape = WithParts();
  const LayoutTable table = LayoutTable::Build(shape).value();
  const auto add = [&](LayoutId layout, Placement placement) {
    return table.Add(layout, *table.Find(placement));
  };
  const LayoutId first = add(LayoutTable::kEmpty, {1, 1});
  EXPECT_EQ(table.Slots(first), 0b0011U);
  EXPECT_EQ(table.InstanceOf(*table.Find({1, 3})), (Placement{0, 2}));
  EXPECT_EQ(table.Copies(first, 1), 1) << "there is one engine";
  EXPECT_NE(add(first, {1, 0}), LayoutTable::kIllegal);
  EXPECT_EQ(add(first, {1, 2}), LayoutTable::kIllegal);
  EXPECT_EQ(add(first, {0, 2}), LayoutTable::kIllegal);
  EXPECT_NE(add(first, {2, 3}), LayoutTable::kIllegal);
  shape.engines = {2};
  shape.profiles[0].excludes =
      1U << 2;  // profiles excluded by the instance are excluded by its parts
  const LayoutTable excluding = LayoutTable::Build(shape).value();
  const LayoutId half = excluding.Add(LayoutTable::kEmpty, *excluding.Find({1, 0}));
  EXPECT_EQ(excluding.Add(half, *excluding.Find({2, 3})), LayoutTable::kIllegal);
  EXPECT_EQ(excluding.Copies(half, 1), 3);
  shape.allowed_geometries = {{1, 0, 0}};  // geometries list instances, not parts
  const LayoutTable narrow = LayoutTable::Build(shape).value();
  EXPECT_EQ(narrow.Copies(LayoutTable::kEmpty, 1), 2);
}

TEST(LayoutTable, RejectsPartsOutsideInstances) {
  ModelShape shape = WithParts();
  shape.profiles[1].part_of = 7;
  EXPECT_EQ(LayoutTable::Build(shape).status().code(), Code::kInvalid);
  shape.profiles[1].part_of = 1;  // a part of a part
  EXPECT_EQ(LayoutTable::Build(shape).status().code(), Code::kInvalid);
  shape = WithParts();
  shape.profiles[0].starts = {0};
  EXPECT_EQ(LayoutTable::Build(shape).status().code(), Code::kInvalid);
}

TEST(LayoutTable, RejectsInvalidShapes) {
  ModelShape shape = ShapeOf("A30", {"1g.6gb"});
  shape.profiles[0].starts = {4};
  EXPECT_EQ(LayoutTable::Build(shape).status().code(), Code::kInvalid);
  shape.profiles[0].starts = {0};
  shape.allowed_geometries = {{1, 1}};
  EXPECT_EQ(LayoutTable::Build(shape).status().code(), Code::kInvalid);
  ModelShape wide;  // 2^32 layouts
  wide.slots = 32;
  wide.profiles = {{1, 32, {}, {}, 0}};
  for (uint8_t i = 0; i < 32; ++i) wide.profiles[0].starts.push_back(i);
  EXPECT_EQ(LayoutTable::Build(wide).status().code(), Code::kInvalid);
}

TEST(LayoutTable, RejectsImpossiblePlacements) {
  const Model& model = *Catalogue::Builtin().FindByName("A100-40GB");
  const Placement big = model.ParsePlacement("7g.40gb@0").value();
  const Placement small = model.ParsePlacement("1g.5gb@6").value();
  EXPECT_TRUE(model.layouts().FromPlacements(std::vector{small}).ok());
  EXPECT_FALSE(model.layouts().FromPlacements(std::vector{big, small}).ok());
  EXPECT_FALSE(model.layouts().FromPlacements(std::vector{small, small}).ok());
  EXPECT_FALSE(model.layouts().FromPlacements(std::vector{Placement{0, 7}}).ok());
}

}  // namespace
}  // namespace nos::gpu
