#include "study/openb/policies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "study/openb/arrivals.h"
#include "study/openb/fgd.h"

namespace nos::study {
namespace {

using scheduling::packing::Choice;
using scheduling::packing::Node;
using scheduling::packing::PodKind;
using scheduling::packing::Score;
using testing::ElementsAre;

constexpr PodKind kHalf{.cpu_milli = 1000, .memory_mib = 1, .gpus = 1, .milli = 500};
constexpr PodKind kWhole{.cpu_milli = 1000, .memory_mib = 1, .gpus = 1, .milli = 1000};
constexpr PodKind kNoGpu{.cpu_milli = 1000, .memory_mib = 1};

Node WithGpus(std::vector<int> gpu_milli, int64_t cpu_milli = 64000) {
  Node node{.cpu_milli = cpu_milli, .memory_mib = 65536};
  node.gpu_milli = std::move(gpu_milli);
  return node;
}

constexpr size_t kNowhere = 999;

Choice ChooseOnce(OpenbPolicy policy, const std::vector<Node>& nodes, const PodKind& pod) {
  const std::vector<PodKind> trace = {kHalf};
  return MakeOpenbPlacer(policy, nodes, trace, Random(1))
      ->Choose(pod)
      .value_or(Choice{kNowhere, {}});
}

TEST(OpenbPolicies, HaveNames) {
  for (const OpenbPolicy policy :
       {OpenbPolicy::kNos, OpenbPolicy::kNosScheduler, OpenbPolicy::kBestFit, OpenbPolicy::kRandom,
        OpenbPolicy::kFgd}) {
    EXPECT_EQ(ParseOpenbPolicy(OpenbPolicyName(policy)).value(), policy);
  }
  EXPECT_EQ(ParseOpenbPolicy("FGD").status().message(),
            "no policy 'FGD'; there are nos, nos-scheduler, best-fit, random and fgd");
}

TEST(OpenbPolicies, AllRespectEveryFilter) {
  Node no_memory = WithGpus({1000});
  no_memory.memory_mib = 0;
  Node full = WithGpus({1000});
  full.pods = 0;
  Node other_model = WithGpus({1000});
  other_model.model = 1;
  PodKind pod = kHalf;
  pod.models = 0b01;
  std::vector<Node> nodes = {no_memory, full, other_model, WithGpus({1000}, 999),
                             WithGpus({499, 499})};
  for (const OpenbPolicy policy :
       {OpenbPolicy::kNos, OpenbPolicy::kNosScheduler, OpenbPolicy::kBestFit, OpenbPolicy::kRandom,
        OpenbPolicy::kFgd}) {
    EXPECT_EQ(ChooseOnce(policy, nodes, pod).node, kNowhere) << OpenbPolicyName(policy);
    nodes.push_back(WithGpus({499, 500}, 1000));
    const Choice choice = ChooseOnce(policy, nodes, pod);
    EXPECT_EQ(choice.node, 5U) << OpenbPolicyName(policy);
    EXPECT_THAT(choice.devices, ElementsAre(1));
    nodes.pop_back();
  }
}

TEST(OpenbPolicies, MultiDevicePodGetsAllDevicesOrNone) {
  const std::vector<Node> nodes = {WithGpus({1000, 500, 1000})};
  for (const OpenbPolicy policy :
       {OpenbPolicy::kNos, OpenbPolicy::kNosScheduler, OpenbPolicy::kBestFit, OpenbPolicy::kRandom,
        OpenbPolicy::kFgd}) {
    EXPECT_THAT(ChooseOnce(policy, nodes, {.gpus = 2, .milli = 1000}).devices, ElementsAre(0, 2));
    EXPECT_EQ(ChooseOnce(policy, nodes, {.gpus = 3, .milli = 1000}).node, kNowhere);
    EXPECT_THAT(ChooseOnce(policy, nodes, kNoGpu).devices, ElementsAre());
  }
}

TEST(OpenbPolicies, BestFitChoosesFullestNodeAndTightestDevice) {
  const std::vector<Node> nodes = {WithGpus({1000, 1000}), WithGpus({900, 600, 700}, 16000),
                                   WithGpus({600, 900, 700}, 16000)};
  const Choice choice = ChooseOnce(OpenbPolicy::kBestFit, nodes, kHalf);
  EXPECT_EQ(choice.node, 1U) << "the first of equal nodes";
  EXPECT_THAT(choice.devices, ElementsAre(1));
}

TEST(OpenbPolicies, RandomReachesEveryNodeAndDevice) {
  const std::vector<Node> nodes = {WithGpus({1000, 100, 1000}), WithGpus({1000}, 0),
                                   WithGpus({600})};
  const auto placer = MakeOpenbPlacer(OpenbPolicy::kRandom, nodes, {}, Random(7));
  std::set<std::pair<size_t, int>> reached;
  for (int i = 0; i < 200; ++i) {
    const Choice choice = placer->Choose(kHalf).value_or(Choice{kNowhere, {-1}});
    reached.emplace(choice.node, choice.devices.at(0));
  }
  EXPECT_THAT(reached, ElementsAre(std::pair(0U, 0), std::pair(0U, 2), std::pair(2U, 0)));
}

// The nodes chosen for a hundred pods, with this trace given to the policy.
std::vector<size_t> NodesChosen(OpenbPolicy policy, const std::vector<PodKind>& trace) {
  std::vector<Node> nodes;
  for (int n = 0; n < 12; ++n) nodes.push_back(WithGpus({1000, 1000, 1000, 1000}, 20000 + n * 500));
  const auto placer = MakeOpenbPlacer(policy, nodes, trace, Random(1));
  Random random(5);
  std::vector<size_t> chosen;
  for (int i = 0; i < 100; ++i) {
    const auto milli = 100 * static_cast<int>(1 + random.Below(10));
    const PodKind pod{.cpu_milli = 1000 + static_cast<int64_t>(random.Below(4000)),
                      .memory_mib = 1,
                      .gpus = 1,
                      .milli = milli};
    const auto choice = placer->Choose(pod);
    chosen.push_back(choice ? choice->node : kNowhere);
    if (!choice) continue;
    Take(nodes[choice->node], pod, choice->devices);
    placer->Placed(pod, *choice);
  }
  return chosen;
}

TEST(OpenbPolicies, NosDoesNotUseFutureArrivals) {
  const std::vector<PodKind> halves(500, kHalf);
  const std::vector<PodKind> heavy(500,
                                   {.cpu_milli = 9000, .memory_mib = 1, .gpus = 2, .milli = 1000});
  EXPECT_EQ(NodesChosen(OpenbPolicy::kNos, halves), NodesChosen(OpenbPolicy::kNos, heavy));
  EXPECT_NE(NodesChosen(OpenbPolicy::kFgd, halves), NodesChosen(OpenbPolicy::kFgd, heavy))
      << "the case tests nothing: a policy that knows the trace decides alike";
}

TEST(Fgd, TypicalPodsAreMostFrequentKinds) {
  std::vector<PodKind> trace(60, kHalf);
  trace.insert(trace.end(), 35, kWhole);
  trace.insert(trace.end(), 5, kNoGpu);
  trace[0].memory_mib = 777;  // memory does not distinguish kinds
  const std::vector<TypicalPod> typical = TypicalPods(trace);
  ASSERT_EQ(typical.size(), 2U) << "the third kind is beyond 95 %";
  EXPECT_EQ(typical[0].kind.milli, 500);
  EXPECT_EQ(typical[0].kind.memory_mib, 0);
  EXPECT_DOUBLE_EQ(typical[0].share, 60 / 95.0);
  EXPECT_DOUBLE_EQ(typical[1].share, 35 / 95.0);
}

TEST(Fgd, FragmentationIsTheIdleGpuThatTypicalPodsCannotUse) {
  const std::vector<TypicalPod> typical = {{kHalf, 0.6}, {kWhole, 0.3}, {kNoGpu, 0.1}};
  // A half GPU cannot use 300; a whole GPU cannot use 300 and 600; a pod without GPUs uses nothing.
  EXPECT_DOUBLE_EQ(Fragmentation(WithGpus({1000, 600, 300}), typical),
                   0.6 * 300 + 0.3 * 900 + 0.1 * 1900);
  EXPECT_DOUBLE_EQ(Fragmentation(WithGpus({1000, 600, 300}, 999), typical), 1900);
}

TEST(Fgd, ScoresTheFallOfFragmentation) {
  const std::vector<TypicalPod> typical = {{kHalf, 0.5}, {kWhole, 0.5}};
  // Device 0: from 0.5 * 600 + 0 to 0.5 * 500 + 0.5 * 1100: worse. Device 1: to 0.5 * 100 + 0.5 *
  // 100: a decrease from 300 to 100.
  const Score score = FgdScore(WithGpus({1000, 600}), kHalf, typical).value_or(Score{});
  EXPECT_EQ(score.device, 1);
  EXPECT_EQ(score.cost, -static_cast<int>(100 / (1 + std::exp(-0.2))));
  EXPECT_FALSE(FgdScore(WithGpus({400}), kHalf, typical));
}

std::vector<PodKind> Trace() {
  std::vector<PodKind> trace(6, kHalf);
  trace.insert(trace.end(), 3, kWhole);
  trace.push_back({.gpus = 4, .milli = 1000});
  return trace;  // 10 GPUs
}

int64_t Total(const std::vector<PodKind>& pods) {
  int64_t total = 0;
  for (const PodKind& pod : pods) total += RequestedMilli(pod);
  return total;
}

TEST(Arrivals, AddDrawsUntilNextWouldExceedTarget) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto pods = ArrangeArrivals(Trace(), 15000, Random(seed)).value();
    EXPECT_GT(pods.size(), 10U);
    EXPECT_GT(Total(pods), 14000);
    // The test before a draw counts one device of four.
    EXPECT_LE(Total(pods), 18000);
    std::vector<PodKind> head(pods.begin(), pods.begin() + 10), trace = Trace();
    std::sort(head.begin(), head.end());
    std::sort(trace.begin(), trace.end());
    EXPECT_EQ(head, trace) << "the whole trace comes first";
  }
}

TEST(Arrivals, RemoveRandomPodsAboveTarget) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto pods = ArrangeArrivals(Trace(), 5000, Random(seed)).value();
    EXPECT_LE(Total(pods), 8000);
    EXPECT_GT(Total(pods), 4000);
  }
}

TEST(Arrivals, DependOnSeed) {
  const auto pods = [](uint64_t seed) {
    return ArrangeArrivals(Trace(), 15000, Random(seed)).value();
  };
  EXPECT_EQ(pods(1), pods(1));
  EXPECT_NE(pods(1), pods(2));
}

TEST(Arrivals, AreBounded) {
  const std::vector<PodKind> tiny = {{.gpus = 1, .milli = 1}};
  EXPECT_EQ(ArrangeArrivals(tiny, 2'000'001, Random(1)).status().code(), Code::kInvalid);
}

}  // namespace
}  // namespace nos::study
