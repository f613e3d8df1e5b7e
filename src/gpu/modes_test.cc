#include "gpu/modes.h"

#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <optional>
#include <set>

#include "gpu/fragmentation.h"
#include "gpu/occupancy.h"

namespace nos::gpu {
namespace {

const Model& Find(std::string_view name) {
  const Model* model = Catalogue::Builtin().FindSharingModes(name);
  EXPECT_NE(model, nullptr) << name;
  return *model;
}

TEST(ModesTest, InstancesOfDifferentModesExcludeEachOther) {
  const Model& model = Find("H100-80GB+GPU+TIME-4");
  EXPECT_EQ(model.name(), "H100-80GB+GPU+TIME-4");
  const ProfileId whole = model.FindProfile("nvidia.com/gpu").value();
  const ProfileId shared = model.FindProfile("nvidia.com/gpu.shared").value();
  const ProfileId one = model.FindProfile("1g.10gb").value();
  Occupancy on(model);
  EXPECT_EQ(on.Copies(whole), 1);
  EXPECT_EQ(on.Copies(shared), 4);
  EXPECT_EQ(on.Copies(one), 7);
  ASSERT_TRUE(on.Add({shared, 2}));
  EXPECT_EQ(on.Copies(whole), 0);
  EXPECT_EQ(on.Copies(shared), 3);
  EXPECT_EQ(on.Copies(one), 0);
  Occupancy given(model);
  ASSERT_TRUE(given.Add({whole, 0}));
  EXPECT_EQ(given.Copies(shared) + given.Copies(one) + given.Copies(whole), 0);
  Occupancy partitioned(model);
  ASSERT_TRUE(partitioned.Add({one, 6}));
  EXPECT_EQ(partitioned.Copies(shared) + partitioned.Copies(whole), 0);
  EXPECT_EQ(partitioned.Copies(one), 6);
}

// The MIG layouts do not change; the layouts of the other modes are added.
TEST(ModesTest, OtherModesDoNotChangeMigLayouts) {
  for (const auto& mig : Catalogue::Builtin().models()) {
    const Model& model = Find(mig->name() + "+GPU+TIME-2");
    std::set<uint64_t> before, after;
    uint64_t of_mig = 0;
    for (size_t p = 0; p < mig->profiles().size(); ++p) {
      of_mig |= model.layouts().PlacementsOf(static_cast<ProfileId>(p));
      EXPECT_EQ(model.profile(static_cast<ProfileId>(p)).name, mig->profiles()[p].name);
    }
    for (size_t l = 0; l < mig->layouts().size(); ++l) {
      before.insert(mig->layouts().Members(static_cast<LayoutId>(l)));
    }
    for (size_t l = 0; l < model.layouts().size(); ++l) {
      const uint64_t members = model.layouts().Members(static_cast<LayoutId>(l));
      if ((members & ~of_mig) == 0) after.insert(members);
    }
    EXPECT_EQ(before, after) << mig->name();
    EXPECT_EQ(model.layouts().size(), mig->layouts().size() + 1 + 3) << mig->name();
    EXPECT_EQ(PlainProfiles(model), PlainProfiles(*mig)) << mig->name();
  }
}

TEST(ModesTest, GpuWithoutMigHasWholeAndTimeSlices) {
  const Model& model = Find("GPU-47GB+GPU+TIME-7");
  EXPECT_EQ(model.memory_gib(), 47);
  EXPECT_EQ(Occupancy(model).Copies(model.FindProfile("shared").value()), 7);
  EXPECT_EQ(Occupancy(model).Copies(model.FindProfile("gpu").value()), 1);
  EXPECT_EQ(Find("GPU-47GB+TIME-2").FindProfile("gpu"), std::nullopt);
}

// A pod's time slice keeps its start when MIG mode is switched on or off.
TEST(ModesTest, TimeSlicesKeepStartsWhenMigModeIsOff) {
  const Model& off = Find("GPU-24GB-4+GPU+TIME-4");
  const Model& on = Find("A30+GPU+TIME-4");
  EXPECT_EQ(off.profile(off.FindProfile("shared").value()).starts,
            on.profile(on.FindProfile("shared").value()).starts);
  EXPECT_EQ(NameOf({.memory_gib = 24, .whole = true, .time_slices = 4, .slots = 4}), off.name());
  EXPECT_EQ(MostTimeSlices({.memory_gib = 24, .slots = 4}), 4);
}

// The instance that contains a part, found by its slots.
Placement InstanceOf(const Model& model, const InstancePart& part, Placement placement) {
  const ProfileId of = *model.FindProfile(part.profile);
  for (const uint8_t start : model.profile(of).starts) {
    if (placement.start >= start && placement.start < start + part.count) return {of, start};
  }
  ADD_FAILURE() << model.PlacementName(placement) << " lies in no " << part.profile;
  return {};
}

// The instances of a layout, whole or divided. nullopt if one instance is both.
std::optional<std::set<Placement>> InstancesOf(const Model& model, const InstancePart& part,
                                               LayoutId layout) {
  const ProfileId id = *model.FindProfile(PartName(part));
  std::set<Placement> instances, divided;
  const LayoutTable& table = model.layouts();
  for (uint64_t rest = table.Members(layout); rest != 0; rest &= rest - 1) {
    const auto at = static_cast<PlacementId>(std::countr_zero(rest));
    const Placement placement = table.placements()[at];
    const bool is_part = placement.profile == id;
    const Placement instance = is_part ? InstanceOf(model, part, placement) : placement;
    EXPECT_EQ(table.InstanceOf(at), instance);
    if (is_part) {
      divided.insert(instance);
    } else if (!instances.insert(instance).second) {
      return std::nullopt;
    }
  }
  for (const Placement& instance : divided) {
    if (!instances.insert(instance).second) return std::nullopt;  // both whole and divided
  }
  return instances;
}

// A layout is legal if and only if it is a legal MIG layout in which some instances are divided.
void CheckParts(const Catalogue& catalogue, const Model& mig, const InstancePart& part) {
  const Model* found = catalogue.FindSharingModes(mig.name() + "+" + PartName(part));
  ASSERT_NE(found, nullptr) << mig.name() << " " << PartName(part);
  const Model& model = *found;
  const ProfileId of = *mig.FindProfile(part.profile), id = *model.FindProfile(PartName(part));
  EXPECT_EQ(model.PartOf(id), of);
  EXPECT_EQ(model.PartOf(of), std::nullopt);
  EXPECT_EQ(PlainProfiles(model), PlainProfiles(mig));
  const LayoutTable& table = model.layouts();
  for (size_t l = 0; l < table.size(); ++l) {
    const auto layout = static_cast<LayoutId>(l);
    const auto instances = InstancesOf(model, part, layout);
    ASSERT_TRUE(instances.has_value());
    const std::vector<Placement> whole(instances->begin(), instances->end());
    const auto undivided = mig.layouts().FromPlacements(whole);
    ASSERT_TRUE(undivided.ok()) << mig.name() << " " << PartName(part);
    EXPECT_EQ(table.Slots(layout), mig.layouts().Slots(*undivided));
  }
  size_t expected = 0;
  for (size_t l = 0; l < mig.layouts().size(); ++l) {
    const auto layout = static_cast<LayoutId>(l);
    const int divisible =
        std::popcount(mig.layouts().Members(layout) & mig.layouts().PlacementsOf(of));
    size_t ways = 1;  // each instance whole, or any subset of its parts
    for (int i = 0; i < divisible; ++i) ways *= size_t{1} << part.count;
    expected += ways;
  }
  EXPECT_EQ(table.size(), expected) << mig.name() << " " << PartName(part);
}

TEST(ModesTest, PartsFollowLayoutsOfTheirInstances) {
  std::set<const LayoutTable*> seen;  // models of equal shape share one table
  for (const auto& builtin : Catalogue::Builtin().models()) {
    if (!seen.insert(&builtin->layouts()).second) continue;
    const auto catalogue =
        Catalogue::Load("");  // a new catalogue, because each limits the number of such models
    ASSERT_TRUE(catalogue.ok());
    const Model* mig = catalogue->FindByName(builtin->name());
    for (const Profile& profile : mig->profiles()) {
      for (const int count : {2, 3, 4, 8}) {
        const InstancePart part{profile.name, count};
        if (CanHaveParts(*mig, part)) {
          CheckParts(*catalogue, *mig, part);
        } else {
          EXPECT_EQ(catalogue->FindSharingModes(mig->name() + "+" + PartName(part)), nullptr);
        }
      }
    }
  }
}

TEST(ModesTest, PartsCoexistWithMigInstancesOnly) {
  const Model& model = Find("H100-80GB+2g.20gb.mps2+3g.40gb.mps2+3g.40gb.mps4+GPU+TIME-4");
  const ProfileId quarter = model.FindProfile("nvidia.com/mig-3g.40gb.mps4").value();
  const ProfileId half = model.FindProfile("3g.40gb.mps2").value();
  const ProfileId three = model.FindProfile("3g.40gb").value();
  const ProfileId four = model.FindProfile("4g.40gb").value();
  const ProfileId one = model.FindProfile("1g.10gb").value();
  EXPECT_EQ(model.profile(quarter).memory_mib, (40448 - 512) / 4)
      << "without the memory of the MPS server";
  EXPECT_EQ(model.profile(quarter).compute, 1);
  EXPECT_EQ(model.profile(quarter).slots, 1);
  EXPECT_EQ(model.profile(half).slots, 2);
  EXPECT_EQ(model.PlacementName({quarter, 6}), "3g.40gb.mps4@6");
  Occupancy on(model);
  EXPECT_EQ(on.Copies(quarter), 8);
  EXPECT_EQ(on.Copies(half), 4);
  ASSERT_TRUE(on.Add({quarter, 6}));
  EXPECT_EQ(on.taken_slots(), 4) << "all slots of the instance";
  EXPECT_EQ(on.Copies(quarter), 7);
  EXPECT_EQ(on.Copies(half), 2) << "only in the other instance";
  EXPECT_EQ(on.Copies(three), 1);
  EXPECT_EQ(on.Copies(four), 1);
  EXPECT_EQ(on.Copies(one), 4);
  for (const char* excluded : {"gpu", "shared", "7g.80gb"}) {
    EXPECT_EQ(on.Copies(model.FindProfile(excluded).value()), 0) << excluded;
  }
  EXPECT_FALSE(on.Add({quarter, 6})) << "already added";
  EXPECT_FALSE(on.Add({three, 4}));
  EXPECT_FALSE(on.Add({half, 4}));
  EXPECT_FALSE(on.Add({one, 5}));
  EXPECT_TRUE(on.Add({quarter, 4}));
  EXPECT_EQ(on.taken_slots(), 4);
  EXPECT_TRUE(on.Add({half, 1}));
  EXPECT_EQ(on.Copies(quarter), 2);
}

TEST(ModesTest, ParsesPartNames) {
  EXPECT_EQ(ParsePartName("3g.40gb.mps4"), (InstancePart{"3g.40gb", 4}));
  for (const std::string_view name :
       {"", "3g.40gb", "3g.40gb.mps", "3g.40gb.mps1", "3g.40gb.mps04", "3g.40gb.mps9", ".mps2",
        "1g.10gb+me.mps2", "3g.40gb.mps4 ", "3G.40gb.mps4", "3g.40gb.mps2.mps2", "3g.40gb.mps-2"}) {
    EXPECT_EQ(ParsePartName(name), std::nullopt) << name;
  }
  EXPECT_TRUE(IsPartResource("nvidia.com/mig-3g.40gb.mps4"));
  EXPECT_FALSE(IsPartResource("nvidia.com/mig-3g.40gb"));
  EXPECT_FALSE(IsPartResource("3g.40gb.mps4"));
  EXPECT_EQ(ParseParts("").value().size(), 0U);
  EXPECT_EQ(ParseParts(" 3g.40gb.mps4, 2g.20gb.mps2,3g.40gb.mps4").value(),
            (std::vector<InstancePart>{{"3g.40gb", 4}, {"2g.20gb", 2}}));
  for (const std::string_view text : {",", "3g.40gb", "3g.40gb.mps4,,2g.20gb.mps2", "gpu"}) {
    EXPECT_EQ(ParseParts(text).status().code(), Code::kInvalid) << text;
  }
}

// Names come from other processes, so the number and the total size of tables are limited.
TEST(ModesTest, LimitsTotalSizeOfTables) {
  const auto catalogue = Catalogue::Load("");
  ASSERT_TRUE(catalogue.ok());
  const Model* mig = catalogue->FindByName("H100-80GB");
  std::map<std::string, const Model*> found;
  size_t layouts = 0, refused = 0;
  for (const bool whole : {false, true}) {
    for (int slices = 1; slices <= 7; ++slices) {
      const std::string name = NameOf({.mig = mig,
                                       .whole = whole,
                                       .time_slices = slices,
                                       .parts = {{"1g.20gb", 2}, {"2g.20gb", 2}, {"3g.40gb", 4}}});
      const Model* model = catalogue->FindSharingModes(name);
      found[name] = model;
      if (model != nullptr) layouts += model->layouts().size();
      if (model == nullptr) ++refused;
    }
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, 10U);
  EXPECT_LE(layouts, 300'000U);
  for (const auto& [name, model] : found) EXPECT_EQ(catalogue->FindSharingModes(name), model);
}

// The user's geometries restrict MIG profiles only.
TEST(ModesTest, UserGeometriesRestrictMigOnly) {
  const auto catalogue = Catalogue::Load(R"(
knownMigGeometries:
  - models: [H100-80GB]
    allowedGeometries:
      - {3g.40gb: 2}
)");
  ASSERT_TRUE(catalogue.ok());
  ASSERT_TRUE(catalogue->problems().empty()) << catalogue->problems()[0];
  const Model* model = catalogue->FindSharingModes("H100-80GB+GPU+TIME-4");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("1g.10gb").value()), 0);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("3g.40gb").value()), 2);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("shared").value()), 4);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("gpu").value()), 1);
}

TEST(ModesTest, AcceptsCanonicalSpellingOnly) {
  const Catalogue& catalogue = Catalogue::Builtin();
  for (const std::string_view name : {"",
                                      "H100-80GB",
                                      "GPU-47GB",
                                      "H100-80GB+",
                                      "H100-80GB+GPU+GPU",
                                      "H100-80GB+TIME-4+GPU",
                                      "H100-80GB+TIME-1",
                                      "H100-80GB+TIME-8",
                                      "H100-80GB+TIME-04",
                                      "H100-80GB+TIME-4x",
                                      "A30+TIME-5",
                                      "h100-80gb+GPU",
                                      "GPU-0GB+GPU",
                                      "GPU-047GB+GPU",
                                      "GPU-9999GB+GPU",
                                      "GPU-GB+GPU",
                                      "GPU-24GB-8+GPU",
                                      "GPU-24GB-04+GPU",
                                      "GPU-24GB-+GPU",
                                      "GPU-24-4GB+GPU",
                                      "GPU-24GB-4+TIME-5",
                                      "H100-80GB+GPU+3g.40gb.mps4",
                                      "H100-80GB+3g.40gb.mps4+2g.20gb.mps2",
                                      "H100-80GB+3g.40gb.mps4+3g.40gb.mps4",
                                      "H100-80GB+3g.40gb.mps04",
                                      "H100-80GB+3g.40gb.mps5",
                                      "H100-80GB+1g.10gb.mps2",
                                      "H100-80GB+3g.20gb.mps2",
                                      "H100-80GB+3g.40gb.mps4+TIME-4+GPU",
                                      "A100-80GB+3g.39gb.mps4",
                                      "GPU-47GB+3g.40gb.mps4+GPU",
                                      "+GPU",
                                      "GPU+GPU",
                                      "nothing+GPU",
                                      "MPS-79GB+GPU"}) {
    EXPECT_EQ(catalogue.FindSharingModes(name), nullptr) << name;
  }
  EXPECT_EQ(NameOf({.memory_gib = 47, .whole = true, .time_slices = 9}), "GPU-47GB+GPU");
  const Model* mig = Catalogue::Builtin().FindByName("H100-80GB");
  EXPECT_EQ(NameOf({.mig = mig,
                    .whole = true,
                    .parts = {{"3g.40gb", 4}, {"3g.20gb", 2}, {"2g.20gb", 2}, {"3g.40gb", 4}}}),
            "H100-80GB+2g.20gb.mps2+3g.40gb.mps4+GPU");
  EXPECT_EQ(&Find("H100-80GB+GPU"), &Find("H100-80GB+GPU")) << "built once";
}

// Any node may report any name.
TEST(ModesTest, UnknownModelsDoNotUseUpLimitOfCatalogueModels) {
  const Result<Catalogue> catalogue = Catalogue::Load("{}");
  ASSERT_TRUE(catalogue.ok());
  const Model* last = nullptr;
  for (int gib = 1; gib <= kMaxModesGib; ++gib) {
    last = catalogue->FindSharingModes("GPU-" + std::to_string(gib) + "GB+GPU");
  }
  EXPECT_EQ(last, nullptr);
  EXPECT_NE(catalogue->FindSharingModes("A100-80GB+GPU+TIME-4"), nullptr);
  EXPECT_NE(catalogue->FindSharingModes("H100-80GB+3g.40gb.mps4+GPU"), nullptr);
}

}  // namespace
}  // namespace nos::gpu
