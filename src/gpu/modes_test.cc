#include "gpu/modes.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "gpu/fragmentation.h"
#include "gpu/occupancy.h"

namespace nos::gpu {
namespace {

const Model& Find(std::string_view name) {
  const Model* model = Catalogue::Builtin().FindModes(name);
  EXPECT_NE(model, nullptr) << name;
  return *model;
}

TEST(ModesTest, OneKindAtATime) {
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
  Occupancy cut(model);
  ASSERT_TRUE(cut.Add({one, 6}));
  EXPECT_EQ(cut.Copies(shared) + cut.Copies(whole), 0);
  EXPECT_EQ(cut.Copies(one), 6);
}

// What MIG allows is what it was: the same layouts, and as many more as there are of the others.
TEST(ModesTest, MigIsAsItWas) {
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

TEST(ModesTest, AGpuWithoutMig) {
  const Model& model = Find("GPU-47GB+GPU+TIME-7");
  EXPECT_EQ(model.memory_gib(), 47);
  EXPECT_EQ(Occupancy(model).Copies(model.FindProfile("shared").value()), 7);
  EXPECT_EQ(Occupancy(model).Copies(model.FindProfile("gpu").value()), 1);
  EXPECT_EQ(Find("GPU-47GB+TIME-2").FindProfile("gpu"), std::nullopt);
}

// A pod's time slice stays where it is when its board may be cut again, or no more.
TEST(ModesTest, TimeSlicesOfABoardWhoseMigModeIsOff) {
  const Model& off = Find("GPU-24GB-4+GPU+TIME-4");
  const Model& on = Find("A30+GPU+TIME-4");
  EXPECT_EQ(off.profile(off.FindProfile("shared").value()).starts,
            on.profile(on.FindProfile("shared").value()).starts);
  EXPECT_EQ(NameOf({.memory_gib = 24, .whole = true, .time_slices = 4, .slots = 4}), off.name());
  EXPECT_EQ(MostTimeSlices({.memory_gib = 24, .slots = 4}), 4);
}

// Geometries that a user lists are of MIG, and say nothing of the rest.
TEST(ModesTest, AUsersGeometries) {
  const auto catalogue = Catalogue::Load(R"(
knownMigGeometries:
  - models: [H100-80GB]
    allowedGeometries:
      - {3g.40gb: 2}
)");
  ASSERT_TRUE(catalogue.ok());
  ASSERT_TRUE(catalogue->problems().empty()) << catalogue->problems()[0];
  const Model* model = catalogue->FindModes("H100-80GB+GPU+TIME-4");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("1g.10gb").value()), 0);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("3g.40gb").value()), 2);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("shared").value()), 4);
  EXPECT_EQ(Occupancy(*model).Copies(model->FindProfile("gpu").value()), 1);
}

TEST(ModesTest, NamesHaveOneSpelling) {
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
                                      "+GPU",
                                      "GPU+GPU",
                                      "nothing+GPU",
                                      "MPS-79GB+GPU"}) {
    EXPECT_EQ(catalogue.FindModes(name), nullptr) << name;
  }
  EXPECT_EQ(NameOf({.memory_gib = 47, .whole = true, .time_slices = 9}), "GPU-47GB+GPU");
  EXPECT_EQ(&Find("H100-80GB+GPU"), &Find("H100-80GB+GPU")) << "made once";
}

}  // namespace
}  // namespace nos::gpu
