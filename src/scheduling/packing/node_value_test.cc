#include "scheduling/packing/node_value.h"

#include <gtest/gtest.h>

#include <cmath>

namespace nos::scheduling::packing {
namespace {

constexpr PodKind kHalf{.gpus = 1, .milli = 500};

Demand Seen(const std::vector<std::pair<PodKind, int>>& pods) {
  Demand demand;
  for (const auto& [pod, count] : pods) {
    for (int i = 0; i < count; ++i) demand.Precompute(pod);
  }
  return demand;
}

Node WithGpus(std::vector<int> gpu_milli) {
  Node node{.cpu_milli = 64000, .memory_mib = 65536};
  node.gpu_milli = std::move(gpu_milli);
  return node;
}

TEST(Demand, CountsKinds) {
  const Demand demand = Seen({{kHalf, 3}, {PodKind{.cpu_milli = 1}, 1}});
  EXPECT_EQ(demand.total(), 4);
  EXPECT_EQ(demand.counts().at(kHalf), 3);
}

TEST(Demand, DropsRareKindsWhenFull) {
  Demand demand = Seen({{kHalf, 10}});
  for (int64_t i = 0; i < static_cast<int64_t>(Demand::kMaxKinds); ++i) {
    demand.Precompute({.cpu_milli = 1 + i});
  }
  EXPECT_LE(demand.counts().size(), Demand::kMaxKinds);
  EXPECT_EQ(demand.counts().at(kHalf), 5);
  EXPECT_EQ(demand.total(), 6);
  EXPECT_EQ(demand.learned(), 10 + static_cast<int64_t>(Demand::kMaxKinds));
}

TEST(NodeValue, HoleIsWorthItsBestFilling) {
  NodeValue value(Seen({{kHalf, 1000}}));
  EXPECT_NEAR(value.Worth(WithGpus({1000})), 1, 1e-6);
  EXPECT_NEAR(value.Worth(WithGpus({500, 999})), 1, 1e-6);
  EXPECT_NEAR(value.Worth(WithGpus({490, 0})), 0, 1e-6);
  EXPECT_NEAR(value.Worth(WithGpus({})), 0, 1e-6);
}

TEST(NodeValue, IsZeroWithoutDemand) {
  NodeValue value{Demand()};
  EXPECT_EQ(value.Worth(WithGpus({1000})), 0);
}

TEST(NodeValue, WeightsRareKindByArrivalProbability) {
  NodeValue value(Seen({{kHalf, 1}, {PodKind{.cpu_milli = 1000}, 249}}));
  const double probability = 1 - std::exp(-1.0);  // 1 of 250 is a share of 0.004
  EXPECT_NEAR(value.Worth(WithGpus({500})), 0.5 * probability, 1e-6);
}

TEST(NodeValue, BoundsWorthByCpuForGpus) {
  // Four cores supply one half. At 0.16 GPUs per core no half is worth its cores, which leaves 0.64
  // for the cores; at 0.08 it is 0.32 + 4 halves * 0.18 = 1.04. Pods use 8 cores per GPU, so four
  // cores supply half a GPU, and the other 1.5 idle GPUs cost 1/30 each.
  NodeValue value(Seen({{PodKind{.cpu_milli = 4000, .gpus = 1, .milli = 500}, 1000}}));
  Node node = WithGpus({1000, 1000});
  node.cpu_milli = 4000;
  EXPECT_NEAR(value.Worth(node), 0.64 - 1.5 / 30, 1e-6);
  node.cpu_milli = 3999;
  EXPECT_LT(value.Worth(node), 0);  // nothing fits; idle GPUs only cost
}

TEST(NodeValue, ModelWithoutDemandIsWorthNothing) {
  NodeValue value(Seen({{PodKind{.gpus = 1, .milli = 500, .models = 0b10}, 1000}}));
  Node node = WithGpus({1000});
  EXPECT_NEAR(value.Worth(node), 0, 1e-6);
  node.model = 1;
  EXPECT_NEAR(value.Worth(node), 1, 1e-6);
}

TEST(NodeValue, ChoosesDeviceThatKeepsMostWorth) {
  // The half wastes little in the hole of 550; on the whole GPU it takes the place of a frequent
  // 600.
  NodeValue value(Seen({{PodKind{.gpus = 1, .milli = 600}, 999}, {kHalf, 1}}));
  const Node node = WithGpus({1000, 550, 550});
  const NodeValue::After after = value.AfterPlacing(node, kHalf);
  EXPECT_EQ(after.device, 1);
  EXPECT_NEAR(after.worth, value.Worth(WithGpus({1000, 50, 550})), 1e-9);
  EXPECT_NEAR(value.Worth(node) - after.worth, 0.5 * (1 - std::exp(-0.25)), 1e-4);
}

TEST(NodeValue, PodWithSeveralGpusTakesWholeGpus) {
  NodeValue value(Seen({{kHalf, 1000}}));
  const PodKind pair{.gpus = 2, .milli = 1000};
  const NodeValue::After after = value.AfterPlacing(WithGpus({1000, 500, 1000}), pair);
  EXPECT_EQ(after.device, -1);
  EXPECT_NEAR(after.worth, value.Worth(WithGpus({0, 500, 0})), 1e-9);
}

}  // namespace
}  // namespace nos::scheduling::packing
