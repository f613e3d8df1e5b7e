#include "scheduling/plugins/gpu_packing/instance_loss.h"

#include <gtest/gtest.h>

#include "scheduling/testing/build.h"

namespace nos::scheduling {
namespace {

// A node with A100-40GB GPUs. The potential of an empty one is 30: 7x1 + 3x2 + 2x3 + 1x4 + 1x7.
InstanceLoss Loss(const std::vector<std::string>& layouts, const char* profile, int count = 1,
                  bool managed = true) {
  auto node =
      testing::NodeOf("a", {},
                      {{std::string(cluster::kProductLabel), "NVIDIA-A100-SXM4-40GB"},
                       {std::string(cluster::kCountLabel), std::to_string(layouts.size())}});
  if (managed) node.meta.labels[std::string(cluster::kPartitioningLabel)] = "mig";
  for (size_t i = 0; i < layouts.size(); ++i) {
    node.meta.annotations["nos.nebuly.com/status-layout-" + std::to_string(i)] = layouts[i];
  }
  const auto snapshot = testing::Snap({node});
  const auto id = cluster::InternResource(std::string(cluster::kMigResourcePrefix) + profile);
  return InstanceLosses().Of(snapshot.node(0), id, count);
}

TEST(InstanceLossTest, IsLostFractionOfPotential) {
  // 1g at 6 leaves 6x1 + 3x2 + 1x3 + 1x4; at 0 it leaves 6x1 + 2x2 + 1x3.
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@6:free"}, "1g.5gb").gpus, 11 / 30.0);
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@0:free"}, "1g.5gb").gpus, 17 / 30.0);
  EXPECT_DOUBLE_EQ(Loss({"7g.40gb@0:free"}, "7g.40gb").gpus, 1);
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@6:free"}, "1g.5gb").free_slots, 7);
}

TEST(InstanceLossTest, IsMeanOverInstancesThatKubeletMayChoose) {
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@6:free", "1g.5gb@0:free"}, "1g.5gb").gpus, 14 / 30.0);
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@6:free", "1g.5gb@0:free"}, "1g.5gb", 2).gpus, 28 / 30.0);
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@6:free", "1g.5gb@0:used"}, "1g.5gb").gpus,
                   Loss({"1g.5gb@6:free,1g.5gb@0:used"}, "1g.5gb").gpus + 7 / 30.0)
      << "used instances do not count";
}

TEST(InstanceLossTest, UnavailableInstancesCostWholeGpu) {
  EXPECT_DOUBLE_EQ(Loss({"7g.40gb@0:used"}, "1g.5gb", 2).gpus, 2);
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@6:free"}, "9g.99gb").gpus, 1);
}

// A free instance costs less than any new one. Among new ones the best placement counts.
TEST(InstanceLossTest, CreatingInstanceCostsMoreThanTakingFreeOne) {
  const double taken = Loss({"1g.5gb@6:free"}, "1g.5gb").gpus;
  const double beside = Loss({"3g.20gb@4:used"}, "1g.5gb").gpus;
  const double on_empty = Loss({""}, "1g.5gb").gpus;
  EXPECT_LT(taken, 1);
  EXPECT_GE(beside, 1);
  EXPECT_LT(beside, on_empty) << "an empty GPU stays whole if another fits";
}

TEST(InstanceLossTest, UnmanagedGpusLoseNothing) {
  EXPECT_DOUBLE_EQ(Loss({"1g.5gb@6:free"}, "1g.5gb", 1, false).gpus, 0);
}

}  // namespace
}  // namespace nos::scheduling
