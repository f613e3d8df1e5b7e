#include "planning/explanation/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "planning/explanation/allowance.h"
#include "planning/model/pack.h"
#include "planning/testing/clusters.h"
#include "planning/testing/problems.h"

namespace nos::planning {
namespace {

using testing::ClusterBuilder;

constexpr const char* kA100 = "NVIDIA-A100-SXM4-40GB";

TEST(AllowanceTest, StopsWhenSpent) {
  const std::function<bool()> never = [] { return false; };
  Allowance allowance(10, 5, never);
  EXPECT_TRUE(allowance.Spend(9));
  EXPECT_FALSE(allowance.Spend(1));
  EXPECT_TRUE(allowance.spent());
}

TEST(AllowanceTest, ShrinksAtTimeLimit) {
  bool late = false;
  const std::function<bool()> is_late = [&] { return late; };
  Allowance allowance(1'000'000'000, 5, is_late);
  EXPECT_TRUE(allowance.Spend(1'000'000));
  late = true;
  EXPECT_TRUE(allowance.Spend(1'000'000));  // polls out_of_time now
  EXPECT_FALSE(allowance.Spend(5));
}

// Different pods, each with many slices: the most expensive input for explanations.
ClusterBuilder Crowd(int nodes, int pods) {
  ClusterBuilder cluster;
  Random random(3);
  for (int n = 0; n < nodes; ++n) {
    cluster.Node("n" + std::to_string(n), kA100, std::vector<std::string>(8, ""));
  }
  for (int p = 0; p < pods; ++p) {
    std::vector<std::string> slices;
    for (const auto& [profile, most] :
         {std::pair{"1g.5gb", 40}, {"2g.10gb", 20}, {"1g.10gb", 9}, {"3g.20gb", 8}}) {
      slices.insert(slices.end(), 1 + random.Below(most), profile);
    }
    cluster.Pod("p" + std::to_string(p), slices, p % 3);
  }
  return cluster;
}

struct Explained {
  int waiting = 0, remedies = 0;
};

// Checks that every pending pod has reasons, and that they count every node once.
Explained Count(const Plan& plan, int nodes) {
  Explained all;
  for (const PodOutcome& pod : plan.pods) {
    if (pod.placed) continue;
    ++all.waiting;
    all.remedies += pod.remedy.empty() ? 0 : 1;
    int counted = 0;
    for (const Reason& r : pod.reasons) counted += r.nodes;
    EXPECT_EQ(counted, nodes) << pod.pod->Key();
  }
  return all;
}

// The time limit applies to the whole plan, so it also limits explanations.
TEST(ExplainTest, OnlyUrgentPodsGetRemediesAfterTimeLimit) {
  constexpr int kNodes = 80, kPods = 400;
  const ClusterBuilder cluster = Crowd(kNodes, kPods);
  PlanOptions options;
  options.out_of_time = [] { return true; };
  const Plan plan = cluster.MakePlan(options);
  const Explained all = Count(plan, kNodes);
  EXPECT_GT(all.waiting, kPods / 2);
  EXPECT_GT(all.remedies, 0);
  EXPECT_LT(all.remedies, all.waiting / 2);
  int least_with = 2, most_without = 0;  // priorities
  for (const PodOutcome& pod : plan.pods) {
    if (pod.placed) continue;
    if (pod.remedy.empty()) most_without = std::max(most_without, pod.pod->priority);
    if (!pod.remedy.empty()) least_with = std::min(least_with, pod.pod->priority);
  }
  EXPECT_GE(least_with, most_without);
}

// Every kind of pod is tried on every node, and there are too many of both. A plan is still made,
// for pods of higher rank first.
TEST(SearchTest, PlacesManyPodsAfterTimeLimit) {
  constexpr int kNodes = 300, kPods = 2500;
  const ClusterBuilder cluster = Crowd(kNodes, kPods);
  PlanOptions options;
  options.out_of_time = [] { return true; };
  const Plan plan = cluster.MakePlan(options);
  EXPECT_EQ(testing::PlanFault(plan, cluster.Snapshot()), "");
  EXPECT_FALSE(plan.complete);
  EXPECT_GT(plan.placed, kNodes / 2);
  EXPECT_GE(plan.upper_bound, plan.placed);
}

TEST(ExplainTest, FewPodsAllGetRemedies) {
  const Plan plan = Crowd(4, 30).MakePlan();
  const Explained all = Count(plan, 4);
  EXPECT_GT(all.waiting, 0);
  EXPECT_EQ(all.remedies, all.waiting);
}

TEST(ExplainTest, SumsUpManyReasonsAsOtherReasons) {
  constexpr int kNodes = 40;
  ClusterBuilder cluster;
  for (int n = 0; n < kNodes; ++n) {  // each with a different defect
    cluster.Node("n" + std::to_string(n), kA100, {"nonsense-" + std::to_string(n)});
  }
  cluster.Pod("p", {"7g.40gb"});
  const Plan plan = cluster.MakePlan();
  Count(plan, kNodes);
  EXPECT_EQ(plan.pods[0].reasons.size(), 17U);
  EXPECT_EQ(plan.pods[0].reasons.back().code, "OtherReasons");
}

// Thousands of orders to take these slices from eight GPUs.
TEST(PackTest, GivesUpWhenStopped) {
  testing::ProblemBuilder builder;
  builder.Node(1000, std::vector<std::string>(8, "A100-40GB"));
  std::vector<std::string> slices(10, "1g.5gb");
  slices.insert(slices.end(), 5, "1g.10gb");
  slices.insert(slices.end(), 8, "2g.10gb");
  slices.insert(slices.end(), 4, "3g.20gb");
  builder.Pods(1, slices);
  const Problem problem = builder.Build();
  GpuStates states(problem);
  Draft draft(problem, states, Draft::Free::kKeep);
  std::vector<GpuStateId> gpus;
  for (int g = 0; g < 8; ++g) gpus.push_back(draft.gpu(g));
  int asked = 0;
  const auto pack = [&](int most) {
    return PackSlices(states.sets(), gpus, problem.classes[0].slices, problem.slices.size(),
                      [&] { return ++asked > most; });
  };
  EXPECT_FALSE(pack(0).known);
  asked = 0;
  EXPECT_FALSE(pack(1).known);  // before the search is complete
  asked = 0;
  const Packed packed = pack(1'000'000);
  EXPECT_TRUE(packed.known);
  EXPECT_TRUE(packed.counts.has_value());
  EXPECT_LT(asked, 1000);
}

TEST(PackTest, DoesNotRememberStoppedResult) {
  testing::ProblemBuilder builder;
  builder.Node(1000, {"A100-40GB", "A100-40GB"});
  // Placed one after the other, both 3g go to one GPU, and the other GPU does not hold two 4g.
  builder.Pods(1, {"3g.20gb", "3g.20gb", "4g.20gb", "4g.20gb"});
  const Problem problem = builder.Build();
  GpuStates states(problem);
  Draft draft(problem, states, Draft::Free::kKeep);
  states.StopWhen([] { return true; });
  const std::optional<bool> stopped = draft.HasRoom(problem.classes[0].shape, 0);
  states.StopWhen([] { return false; });
  const std::optional<bool> known = draft.HasRoom(problem.classes[0].shape, 0);
  EXPECT_EQ(stopped, std::nullopt);
  EXPECT_EQ(known, true);
}

}  // namespace
}  // namespace nos::planning
