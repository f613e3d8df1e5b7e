#include "scheduling/packing/packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace nos::scheduling::packing {
namespace {

using testing::ElementsAre;

constexpr PodKind kHalf{.cpu_milli = 1000, .memory_mib = 1024, .gpus = 1, .milli = 500};
constexpr PodKind kWhole{.cpu_milli = 1000, .memory_mib = 1024, .gpus = 1, .milli = 1000};
constexpr PodKind kNoGpu{.cpu_milli = 1000, .memory_mib = 1024};

const Choice kNowhere{999, {}};

Node WithGpus(std::vector<int> gpu_milli) {
  Node node{.cpu_milli = 64000, .memory_mib = 65536};
  node.gpu_milli = std::move(gpu_milli);
  return node;
}

TEST(Fits, ChecksCpuMemoryPodsModelAndDevices) {
  Node node = WithGpus({400, 600});
  node.model = 3;
  node.pods = 1;
  EXPECT_TRUE(Fits(node, kHalf));
  EXPECT_FALSE(Fits(node, kWhole));
  PodKind pod = kHalf;
  pod.cpu_milli = 64001;
  EXPECT_FALSE(Fits(node, pod));
  pod = kHalf;
  pod.memory_mib = 65537;
  EXPECT_FALSE(Fits(node, pod));
  pod = kHalf;
  pod.models = 0b0111;
  EXPECT_FALSE(Fits(node, pod));
  pod.models = 0b1000;
  EXPECT_TRUE(Fits(node, pod));
  pod.gpus = 0;
  pod.models = 0;
  EXPECT_TRUE(Fits(node, pod)) << "models matter only to GPU pods";
  node.pods = 0;
  EXPECT_FALSE(Fits(node, kNoGpu));
}

TEST(Packer, FillsFittingHoleBeforeWholeGpu) {
  // On the whole GPU, the half would take the place of one of the many 600s.
  Packer packer({WithGpus({1000}), WithGpus({550})});
  packer.Precompute(kHalf);
  for (int i = 0; i < 1100; ++i) packer.Precompute({.gpus = 1, .milli = 600});
  const Choice choice = packer.Choose(kHalf).value_or(kNowhere);
  EXPECT_EQ(choice.node, 1U);
  EXPECT_THAT(choice.devices, ElementsAre(0));
}

TEST(Packer, ChoosesFirstNodeOnEqualLoss) {
  Packer packer({WithGpus({1000}), WithGpus({1000}), WithGpus({1000})});
  packer.Precompute(kWhole);
  EXPECT_EQ(packer.Choose(kWhole).value_or(kNowhere).node, 0U);
  packer.Place(kWhole, {0, {0}});
  EXPECT_EQ(packer.Choose(kWhole).value_or(kNowhere).node, 1U);
}

TEST(Packer, PodWithoutGpuAvoidsNodesWithIdleGpus) {
  Node busy = WithGpus({0});
  Node idle = WithGpus({1000});
  busy.cpu_milli = idle.cpu_milli = 1000;
  Packer packer({idle, busy});
  for (int i = 0; i < 10; ++i) packer.Precompute(kWhole);
  EXPECT_EQ(packer.Choose(kNoGpu).value_or(kNowhere).node, 1U);
}

TEST(Packer, PodWithSeveralGpusTakesUnusedGpus) {
  Packer packer({WithGpus({1000, 1000}), WithGpus({1000, 990, 1000, 1000})});
  const PodKind three{.gpus = 3, .milli = 1000};
  packer.Precompute(three);
  const Choice choice = packer.Choose(three).value_or(kNowhere);
  EXPECT_EQ(choice.node, 1U);
  EXPECT_THAT(choice.devices, ElementsAre(0, 2, 3));
}

TEST(Packer, ChoosesOnlyAllowedNodes) {
  Packer packer({WithGpus({1000}), WithGpus({500})});
  packer.Precompute(kHalf);
  EXPECT_EQ(packer.Choose(kHalf, [](size_t node) { return node == 0; }).value_or(kNowhere).node,
            0U);
  EXPECT_FALSE(packer.Choose(kHalf, [](size_t) { return false; }));
}

TEST(Packer, ReleaseUndoesPlaceAndUpdateReplaces) {
  Packer packer({WithGpus({1000})});
  const std::vector<Node> before = packer.nodes();
  packer.Precompute(kWhole);
  const Choice choice = packer.Choose(kWhole).value_or(kNowhere);
  packer.Place(kWhole, choice);
  EXPECT_FALSE(packer.Choose(kWhole));
  EXPECT_FALSE(packer.Loss(kWhole, 0));
  packer.Release(kWhole, choice);
  EXPECT_EQ(packer.nodes(), before);
  EXPECT_TRUE(packer.Choose(kWhole));
  packer.Update(0, WithGpus({999}));
  EXPECT_FALSE(packer.Choose(kWhole));
}

TEST(Packer, LossEqualsWorthOfTakenResources) {
  Demand demand;
  for (int i = 0; i < 1000; ++i) demand.Precompute({.gpus = 1, .milli = 500});
  Packer packer({WithGpus({1000}), WithGpus({900})}, demand);
  const PodKind small{.gpus = 1, .milli = 400};
  EXPECT_NEAR(packer.Loss(small, 0).value_or(-1), 0.5,
              1e-6);  // 600 left: space for one half instead of two
  EXPECT_NEAR(packer.Loss(small, 1).value_or(-1), 0, 1e-6);  // 500 left: still space for one
}

class RandomRuns : public testing::TestWithParam<uint64_t> {};

PodKind RandomKind(Random& random) {
  PodKind kind{.cpu_milli = static_cast<int64_t>(random.Below(8)) * 1000,
               .memory_mib = static_cast<int64_t>(random.Below(8)) * 2048};
  kind.gpus = static_cast<int>(random.Below(4));
  if (kind.gpus > 1) kind.milli = 1000;
  if (kind.gpus == 1) kind.milli = static_cast<int>(50 * (1 + random.Below(20)));
  if (random.Chance(0.3)) kind.models = 1 + random.Below(7);
  return kind;
}

std::vector<Node> RandomNodes(Random& random) {
  std::vector<Node> nodes;
  for (int i = 0; i < 12; ++i) {
    Node node{.cpu_milli = static_cast<int64_t>(random.Below(24)) * 1000,
              .memory_mib = static_cast<int64_t>(random.Below(24)) * 2048,
              .model = static_cast<int>(random.Below(3))};
    node.gpu_milli.assign(1 + random.Below(4), 1000);
    nodes.push_back(node);
  }
  return nodes;
}

// Adds and removes random pods. `step` receives the packer and the choice for each new pod.
template <typename Step>
void RunPods(Random& random, Packer& packer, bool learn, Step&& step) {
  std::vector<std::pair<PodKind, Choice>> running;
  for (int i = 0; i < 60; ++i) {
    const PodKind kind = RandomKind(random);
    if (learn) packer.Precompute(kind);
    const auto choice = packer.Choose(kind);
    step(kind, choice);
    if (choice) {
      packer.Place(kind, choice.value());
      running.emplace_back(kind, choice.value());
    }
    if (!running.empty() && random.Chance(0.4)) {
      std::swap(running[random.Below(running.size())], running.back());
      packer.Release(running.back().first, running.back().second);
      running.pop_back();
    }
  }
}

TEST_P(RandomRuns, RefusesOnlyUnplaceablePodsAndNeverOvercommits) {
  Random random(GetParam());
  Packer packer(RandomNodes(random));
  RunPods(random, packer, true, [&](const PodKind& kind, const std::optional<Choice>& choice) {
    const auto& nodes = packer.nodes();
    const bool fits =
        std::any_of(nodes.begin(), nodes.end(), [&](const Node& node) { return Fits(node, kind); });
    ASSERT_EQ(choice.has_value(), fits);
    if (!choice) return;
    Node node = nodes[choice.value().node];
    ASSERT_TRUE(Fits(node, kind));
    ASSERT_EQ(static_cast<int>(choice.value().devices.size()), kind.gpus);
    Take(node, kind, choice.value().devices);
    ASSERT_GE(*std::min_element(node.gpu_milli.begin(), node.gpu_milli.end()), 0);
  });
}

TEST_P(RandomRuns, ChoosesLikePackerBuiltFromSameState) {
  Random random(GetParam());
  Demand demand;
  for (int i = 0; i < 200; ++i) demand.Precompute(RandomKind(random));
  Packer packer(RandomNodes(random), demand);
  RunPods(random, packer, false, [&](const PodKind& kind, const std::optional<Choice>& choice) {
    const auto fresh = Packer(packer.nodes(), demand).Choose(kind);
    ASSERT_EQ(choice.has_value(), fresh.has_value());
    if (!choice || !fresh) return;
    EXPECT_EQ(choice->node, fresh->node);
    EXPECT_EQ(choice->devices, fresh->devices);
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRuns, testing::Range<uint64_t>(1, 21));

TEST(ScoreMemo, RescoresOnlyChangedNodes) {
  ScoreMemo memo(3);
  int scored = 0;
  const auto score = [&](size_t node) {
    ++scored;
    return std::optional(Score{static_cast<int32_t>(node == 2 ? 1 : 5)});
  };
  const auto any = [](size_t) { return true; };
  EXPECT_EQ(memo.Lowest(kHalf, score, any).value_or(ScoreMemo::Best{}).node, 2U);
  EXPECT_EQ(scored, 3);
  memo.Touch(1);
  EXPECT_EQ(memo.Lowest(kHalf, score, any).value_or(ScoreMemo::Best{}).node, 2U);
  EXPECT_EQ(scored, 4);
  memo.Forget();
  memo.Lowest(kHalf, score, any);
  EXPECT_EQ(scored, 7);
}

TEST(ScoreMemo, StaysWithinEntryLimit) {
  ScoreMemo memo(2, 2);  // one row
  int scored = 0;
  const auto score = [&](size_t) {
    ++scored;
    return std::optional(Score{});
  };
  const auto any = [](size_t) { return true; };
  memo.Lowest(kHalf, score, any);
  memo.Lowest(kWhole, score, any);
  memo.Lowest(kHalf, score, any);
  EXPECT_EQ(scored, 6);
}

}  // namespace
}  // namespace nos::scheduling::packing
