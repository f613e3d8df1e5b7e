#include <gtest/gtest.h>

#include "agent/sharing_modes.h"

namespace nos::agent {
namespace {

RequestedMode ModeOf(const std::string& label, bool whole = true) {
  cluster::Node node;
  node.meta.labels["nos.nebuly.com/gpu-partitioning"] = label;
  return RequestedModeOf(AllSharingModes({.whole = whole}), node);
}

TEST(SharingModesTest, ReadsLabel) {
  EXPECT_FALSE(ModeOf("mig").mps);
  EXPECT_FALSE(ModeOf("mig").per_gpu);
  EXPECT_TRUE(ModeOf("mps").mps);
  EXPECT_FALSE(ModeOf("mps").per_gpu);
  EXPECT_TRUE(ModeOf("hybrid").mps);
  EXPECT_TRUE(ModeOf("hybrid").per_gpu);
}

TEST(SharingModesTest, GivesWholeGpusOnMigNodesWithoutSharingThem) {
  cluster::Node node;
  node.meta.labels["nos.nebuly.com/gpu-partitioning"] = "mig";
  const auto mode = [&](bool whole) {
    return RequestedModeOf(AllSharingModes({.whole = whole, .whole_on_mig_nodes = true}), node);
  };
  EXPECT_TRUE(mode(true).per_gpu);
  EXPECT_FALSE(mode(true).mps);
  EXPECT_FALSE(mode(false).per_gpu) << "another plugin offers them";
}

TEST(SharingModesTest, IsNotHybridIfGpusCannotBeGivenAsAWhole) {
  EXPECT_FALSE(ModeOf("hybrid", false).per_gpu);
  EXPECT_FALSE(ModeOf("hybrid", false).mps);
  EXPECT_TRUE(ModeOf("mps", false).mps);
}

}  // namespace
}  // namespace nos::agent
