#include "gpu/shares.h"

#include <gtest/gtest.h>

#include "gpu/occupancy.h"

namespace nos::gpu {
namespace {

TEST(SharesTest, OffersEveryShareSizeThatMemoryAllows) {
  const Model& model = SharesOf(79);
  EXPECT_EQ(model.name(), "MPS-79GB");
  EXPECT_TRUE(model.counted());
  EXPECT_EQ(model.profiles().size(), 79);
  const auto ten = model.FindProfile("nvidia.com/gpu-10gb");
  ASSERT_TRUE(ten);
  EXPECT_EQ(model.profile(*ten).memory_mib, 10 * 1024);
  EXPECT_EQ(model.FindProfile("10gb"), ten);
  EXPECT_FALSE(model.FindProfile("80gb"));
  EXPECT_FALSE(model.FindProfile("0gb"));
  EXPECT_EQ(&SharesOf(79), &model);
  EXPECT_EQ(FindShares("MPS-79GB"), &model);
}

// "Two shares of 16 GB on a V100 of 32 GB fail": the MPS server needs memory, too. A GPU of 40,536
// MiB has less than 40 GiB.
TEST(SharesTest, RoundsGpuMemoryDownToWholeGib) {
  EXPECT_EQ(SharesOfMemory(32'768)->slots(), 31);
  EXPECT_EQ(SharesOfMemory(81'920)->slots(), 79);
  EXPECT_EQ(SharesOfMemory(40'536)->slots(), 39);
  EXPECT_EQ(SharesOfMemory(1'535), nullptr);
  EXPECT_EQ(SharesOfMemory(0), nullptr);
  EXPECT_EQ(SharesOfMemory(-5), nullptr);
  EXPECT_EQ(SharesOfMemory(INT64_MAX)->slots(), kMaxSharedGib);
}

TEST(SharesTest, AcceptsCanonicalNamesOnly) {
  for (const char* name :
       {"MPS-0GB", "MPS-GB", "MPS-07GB", "MPS-961GB", "MPS--3GB", "MPS-3gb", "A100-40GB",
        "MPS-3GB ", "MPS-3GB+CLIENTS-0", "MPS-3GB+CLIENTS-48", "MPS-3GB+CLIENTS-61",
        "MPS-3GB+CLIENTS-016", "MPS-3GB+CLIENTS-", "MPS-3GB+", "+CLIENTS-5",
        "MPS-3GB+CLIENTS-5+CLIENTS-5", "MPS-99999999999999999999GB"}) {
    EXPECT_EQ(FindShares(name), nullptr) << name;
  }
  EXPECT_TRUE(IsShareResource("nvidia.com/gpu-10gb"));
  for (const char* name : {"nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/gpu-gb",
                           "nvidia.com/gpu-010gb", "nvidia.com/gpu-10gb.me", "nvidia.com/gpu-0gb",
                           "nvidia.com/mig-1g.10gb", "x/nvidia.com/gpu-10gb"}) {
    EXPECT_FALSE(IsShareResource(name)) << name;
  }
}

TEST(SharesTest, ClientLimitIsPartOfModel) {
  const Model& few = SharesOf(79, 16);
  EXPECT_EQ(few.name(), "MPS-79GB+CLIENTS-16");
  EXPECT_EQ(few.max_instances(), 16);
  EXPECT_EQ(few.profile(*few.FindProfile("1gb")).max_count, 16);
  EXPECT_EQ(FindShares("MPS-79GB+CLIENTS-16"), &few);
  EXPECT_EQ(&SharesOf(79, kMaxShares), &SharesOf(79));
  EXPECT_EQ(SharesOf(79, 1000).max_instances(), kMaxClients);
  EXPECT_EQ(SharesOf(79, 0).max_instances(), 1);
  Occupancy on(few);
  const ProfileId one = *few.FindProfile("1gb");
  for (uint8_t i = 0; i < 16; ++i) EXPECT_TRUE(on.Add({one, i}));
  EXPECT_EQ(on.FirstPlace(one), std::nullopt);
  EXPECT_EQ(Occupancy(few).Copies(one), 16);
  EXPECT_TRUE(Occupancy(few).Add({one, 40})) << "a share in use may have any number";
}

// Any node may report any size, and models are never freed.
TEST(SharesTest, LimitsModelsCreatedForReportedNames) {
  const Model& known = SharesOf(79);
  size_t made = 0;
  for (int gib = kMaxSharedGib; gib > 950; --gib) {
    for (int clients = 1; clients <= kMaxClients; ++clients) {
      made += FindShares(gib, clients) != nullptr ? 1 : 0;
    }
  }
  EXPECT_LE(made, kMaxShareModels);
  EXPECT_EQ(FindShares("MPS-951GB+CLIENTS-59"), nullptr);
  EXPECT_EQ(FindShares("MPS-79GB"), &known);
  EXPECT_EQ(SharesOf(951, 59).slots(), 951);  // this caller knows the GPU
}

TEST(SharesTest, StartOfShareIsItsNumber) {
  const Model& model = SharesOf(40);
  const auto placement = model.ParsePlacement("10gb@59");
  ASSERT_TRUE(placement.ok());
  EXPECT_EQ(model.PlacementName(*placement), "10gb@59");
  EXPECT_FALSE(model.ParsePlacement("10gb@60").ok());
  EXPECT_FALSE(model.ParsePlacement("10gb@-1").ok());
  EXPECT_FALSE(model.ParsePlacement("41gb@0").ok());
}

TEST(SharesTest, LargeGpuOffersLargeShares) {
  const Model& model = SharesOf(287);
  EXPECT_EQ(model.profiles().size(), kMaxShareGib);
  EXPECT_TRUE(model.FindProfile("255gb"));
}

TEST(OccupancyTest, SharesFitByMemoryAndNumberOfShares) {
  const Model& model = SharesOf(40);
  const ProfileId ten = *model.FindProfile("10gb"), one = *model.FindProfile("1gb");
  Occupancy on(model);
  EXPECT_EQ(on.Copies(ten), 4);
  EXPECT_EQ(on.Copies(one), 40);
  EXPECT_TRUE(on.Add({ten, 3}));
  EXPECT_FALSE(on.Add({one, 3})) << "each number has one share";
  EXPECT_FALSE(on.Add({one, kMaxClients}));
  EXPECT_EQ(on.FirstPlace(ten), (Placement{ten, 0}));
  for (uint8_t i = 0; i < 3; ++i) EXPECT_TRUE(on.Add({ten, i}));
  EXPECT_EQ(on.FirstPlace(one), std::nullopt);
  EXPECT_FALSE(on.Add({one, 10}));
  EXPECT_EQ(on.free_slots(), 0);
}

TEST(OccupancyTest, ClientLimitBoundsShares) {
  const Model& model = SharesOf(79);
  const ProfileId one = *model.FindProfile("1gb");
  Occupancy on(model);
  while (const auto place = on.FirstPlace(one)) ASSERT_TRUE(on.Add(*place));
  EXPECT_EQ(on.count(), kMaxShares);
  EXPECT_EQ(on.free_slots(), 79 - kMaxShares);
}

TEST(OccupancyTest, MigInstancesFollowLayoutTable) {
  const Model& model = *Catalogue::Builtin().FindByName("A100-40GB");
  const ProfileId three = *model.FindProfile("3g.20gb"), one = *model.FindProfile("1g.5gb");
  Occupancy on(model);
  EXPECT_TRUE(on.Add({three, 4}));
  EXPECT_FALSE(on.Add({one, 5}));
  EXPECT_EQ(on.Copies(one), 4);
  EXPECT_EQ(on.FirstPlace(one), (Placement{one, 0}));
  EXPECT_EQ(on.taken_slots(), 4);
}

}  // namespace
}  // namespace nos::gpu
