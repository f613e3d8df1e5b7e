#include "gpu/product.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/modes.h"
#include "gpu/shares.h"

namespace nos::gpu {
namespace {

using ::testing::ElementsAre;

const Model& Find(std::string_view name) {
  const Model* model = Catalogue::Builtin().FindSharingModes(name);
  if (model == nullptr) model = Catalogue::Builtin().FindByName(name);
  EXPECT_NE(model, nullptr) << name;
  return *model;
}

TEST(BoardTest, ProductNameHasNoSharingModeSuffixes) {
  for (const auto& [model, board] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"H100-80GB", "H100-80GB"},
           {"H100-80GB+GPU", "H100-80GB"},
           {"H100-80GB+TIME-4", "H100-80GB"},
           {"A30+GPU+TIME-4", "A30"},
           {"GPU-47GB+GPU+TIME-7", "GPU-47GB"},
           {"H100-80GB+2g.20gb.mps2+3g.40gb.mps4+GPU+TIME-4", "H100-80GB"},
           {"MPS-79GB", "79GB"},
           {"MPS-79GB+CLIENTS-16", "79GB"},
           {"Mine+GPUS", "Mine+GPUS"},
           {"Mine+TIME-x", "Mine+TIME-x"},
           {"MPS-many", "MPS-many"},
           {"+GPU", "+GPU"},
           {"", ""}}) {
    EXPECT_EQ(ProductOf(model), board) << model;
  }
}

TEST(BoardTest, SuperchipsHaveArmHosts) {
  for (const std::string_view product :
       {"GB200", "GB300", "GH200-144GB", "NVIDIA-GH200-480GB", "NVIDIA GH200 144G HBM3e",
        "NVIDIA-GB200-MIG-1g.23gb", "NVIDIA-GB10"}) {
    EXPECT_EQ(ArchitectureOfHost(product), "arm64") << product;
  }
  for (const std::string_view product :
       {"H100-96GB", "NVIDIA-B200", "A100-40GB", "NVIDIA-H100-80GB-HBM3", "RTX-PRO-6000", "GB",
        "80GB", "gb200x", ""}) {
    EXPECT_EQ(ArchitectureOfHost(product), "amd64") << product;
  }
}

TEST(BoardTest, SharedGpuTakesProductFromOtherModelOrLabel) {
  const Model& unshared = Find("H100-80GB+GPU+TIME-4");
  const Model& mig = Find("A100-40GB");
  EXPECT_EQ(ProductOf(SharesOf(79), &unshared, &mig), "H100-80GB")
      << "the model that the agent reports decides";
  EXPECT_EQ(ProductOf(SharesOf(39), nullptr, &mig), "A100-40GB");
  EXPECT_EQ(ProductOf(SharesOf(39), nullptr), "39GB");
  EXPECT_EQ(ProductOf(unshared, &SharesOf(79), &mig), "H100-80GB");
}

TEST(BoardTest, SharingModeFollowsInstancesOnGpu) {
  const Model& unshared = Find("H100-80GB+GPU+TIME-4");
  const auto mode = [](const Model& model, std::string_view profile) {
    const Placement there[] = {{model.FindProfile(profile).value(), 0}};
    return SharingModeOf(model, there);
  };
  EXPECT_EQ(mode(unshared, "3g.40gb"), "MIG");
  EXPECT_EQ(mode(unshared, "nvidia.com/gpu"), "whole");
  EXPECT_EQ(mode(unshared, "nvidia.com/gpu.shared"), "time slices");
  EXPECT_EQ(mode(SharesOf(79), "10gb"), "MPS");
  EXPECT_EQ(SharingModeOf(unshared, {}), "");
  EXPECT_EQ(SharingModeOfProfile("1g.10gb+me"), "MIG");
  EXPECT_EQ(SharingModeOfProfile("gb"), "MIG") << "not the name of a share";
}

TEST(BoardTest, ListsPossibleSharingModes) {
  const Model& unshared = Find("H100-80GB+GPU+TIME-4");
  EXPECT_THAT(SharingModesOf(unshared, &SharesOf(79)),
              ElementsAre("MIG", "MPS", "time slices", "whole"));
  EXPECT_THAT(SharingModesOf(SharesOf(79), &unshared),
              ElementsAre("MIG", "MPS", "time slices", "whole"));
  EXPECT_THAT(SharingModesOf(Find("GPU-47GB+GPU+TIME-4"), nullptr),
              ElementsAre("time slices", "whole"));
  EXPECT_THAT(SharingModesOf(Find("A100-40GB"), nullptr), ElementsAre("MIG"));
  EXPECT_THAT(SharingModesOf(SharesOf(39), nullptr), ElementsAre("MPS"));
}

}  // namespace
}  // namespace nos::gpu
