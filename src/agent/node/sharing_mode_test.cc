#include "agent/node/sharing_mode.h"

#include <gtest/gtest.h>

namespace nos::agent {
namespace {

SharingMode ModeOf(const std::string& label, bool gives_whole = true) {
  cluster::Node node;
  node.meta.labels["nos.nebuly.com/gpu-partitioning"] = label;
  return SharingModeOf(node, gives_whole);
}

TEST(SharingModeTest, ReadsLabel) {
  EXPECT_FALSE(ModeOf("mig").mps);
  EXPECT_FALSE(ModeOf("mig").per_gpu);
  EXPECT_TRUE(ModeOf("mps").WholeNodeMps());
  EXPECT_TRUE(ModeOf("hybrid").per_gpu);
  EXPECT_TRUE(ModeOf("hybrid").mps);
  EXPECT_FALSE(ModeOf("hybrid").WholeNodeMps());
}

TEST(SharingModeTest, IsNotHybridIfGpusCannotBeGivenAsAWhole) {
  EXPECT_FALSE(ModeOf("hybrid", false).per_gpu);
  EXPECT_FALSE(ModeOf("hybrid", false).mps);
  EXPECT_TRUE(ModeOf("mps", false).mps);
}

}  // namespace
}  // namespace nos::agent
