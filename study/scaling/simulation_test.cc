#include "study/scaling/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace nos::study {
namespace {

using testing::HasSubstr;

ScalingJob Whole(double arrival, double duration, int gpus = 1) {
  return {arrival, duration, 1000, 1024, gpus, ""};
}
ScalingJob Slice(double arrival, double duration, const std::string& slice) {
  return {arrival, duration, 1000, 1024, 0, slice};
}

// Nodes that are ready after 100 s and removed 200 s after they were last needed.
ScalingOptions With(ScalingPolicy policy, const std::string& layout = "whole", int gpus = 1) {
  ScalingOptions options;
  options.pools = {{"pool", gpus, 16'000, 131'072, 10}};
  options.policy = policy;
  options.layout = layout;
  options.window = 200;
  options.start_seconds = 100;
  options.restart_seconds = 60;
  options.repartition_seconds = 10;
  return options;
}
ScalingReport Simulate(const std::vector<ScalingJob>& jobs, const ScalingOptions& options) {
  const auto report = RunScaling(jobs, options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.value_or({});
}
// In whole seconds, to compare with hand-computed values.
long NodeSeconds(const ScalingReport& report) { return std::lround(3600 * report.node_hours); }

constexpr auto kBaseline = ScalingPolicy::kUnschedulable;
constexpr ScalingPolicy kOfNos[] = {ScalingPolicy::kRepartition,
                                    ScalingPolicy::kRepartitionScaleDown, ScalingPolicy::kAll};

// Requested at the scan at 10, ready at 110, idle from 1,110 to 1,310.
TEST(ScalingTest, BaselineRunsOneJobOnOneNode) {
  const ScalingReport report = Simulate({Whole(5, 1000)}, With(kBaseline));
  EXPECT_EQ(report.jobs, 1U);
  EXPECT_EQ(NodeSeconds(report), 1300);
  EXPECT_DOUBLE_EQ(report.mean_wait, 105);
  EXPECT_DOUBLE_EQ(report.p95_wait, 105);
  EXPECT_EQ(report.max_nodes, 1);
  EXPECT_NEAR(report.asked_gpu_hours, 1000 / 3600.0, 1e-9);
  EXPECT_NEAR(report.cost, 1300 / 3600.0, 1e-9);
}

// Planned at 15, ready at 115, partitioned at 125, idle from 1,125 to 1,325.
TEST(ScalingTest, NosRunsOneJobOnOneNode) {
  for (const ScalingPolicy policy : kOfNos) {
    const ScalingReport report = Simulate({Whole(5, 1000)}, With(policy));
    EXPECT_EQ(NodeSeconds(report), 1310) << ScalingPolicyName(policy);
    EXPECT_DOUBLE_EQ(report.mean_wait, 120);
    EXPECT_EQ(report.max_nodes, 1);
    EXPECT_EQ(report.moves, 0);
  }
}

TEST(ScalingTest, NodeCostsItsNumberOfGpus) {
  const ScalingReport report = Simulate({Whole(5, 1000, 4)}, With(kBaseline, "whole", 4));
  EXPECT_NEAR(report.cost, 4 * report.node_hours, 1e-9);
  EXPECT_EQ(NodeSeconds(report), 1300);
}

TEST(ScalingTest, SlicesShareGpuWithMatchingLayout) {
  const std::vector<ScalingJob> jobs = {Slice(5, 1000, "2g.20gb"), Slice(5, 1000, "2g.20gb")};
  EXPECT_EQ(NodeSeconds(Simulate(jobs, With(kBaseline, "whole"))), 2600);  // one GPU each
  EXPECT_EQ(NodeSeconds(Simulate(jobs, With(kBaseline, "2x3g"))), 1300);
  EXPECT_EQ(NodeSeconds(Simulate(jobs, With(kBaseline, "7x1g"))),
            2600);  // no slice is large enough
  for (const ScalingPolicy policy : kOfNos) {
    EXPECT_EQ(NodeSeconds(Simulate(jobs, With(policy))), 1310) << ScalingPolicyName(policy);
  }
}

// nos repartitions the idle whole GPU for the second job. The baseline needs a node with
// partitioned GPUs: it keeps the first node until 1,400, because one was added at 1,200, and the
// second from 1,200 to 2,500.
TEST(ScalingTest, NosRepartitionsIdleGpuBeforeAddingNode) {
  const std::vector<ScalingJob> jobs = {Whole(5, 1000), Slice(1200, 1000, "2g.20gb")};
  const ScalingReport fixed = Simulate(jobs, With(kBaseline, "2x3g"));
  EXPECT_EQ(NodeSeconds(fixed), 1390 + 1300);
  EXPECT_DOUBLE_EQ(fixed.mean_wait, (105 + 100) / 2.0);
  EXPECT_EQ(fixed.max_nodes, 2);
  for (const ScalingPolicy policy : kOfNos) {
    const ScalingReport repartition = Simulate(jobs, With(policy));
    EXPECT_EQ(NodeSeconds(repartition), 2410 - 15) << ScalingPolicyName(policy);
    EXPECT_DOUBLE_EQ(repartition.mean_wait, (120 + 10) / 2.0);
    EXPECT_EQ(repartition.max_nodes, 1);
  }
}

// From 1,125 on both nodes are half empty: the first job, which shared a node with the second, has
// ended.
std::vector<ScalingJob> HalfEmptyNodes() {
  return {Slice(5, 1000, "4g.40gb"), Slice(5, 10'000, "3g.40gb"), Slice(200, 10'000, "3g.40gb")};
}

TEST(ScalingTest, WithoutScaleDownOnlyEmptyNodesAreRemoved) {
  const ScalingReport report = Simulate(HalfEmptyNodes(), With(ScalingPolicy::kRepartition));
  EXPECT_EQ(NodeSeconds(report), (10'325 - 15) + (10'520 - 210));
  EXPECT_EQ(report.moves, 0);
  EXPECT_DOUBLE_EQ(report.mean_wait, 120);
}

// The first node could be removed from 1,125 on and is removed at 1,325, like the baseline's. The
// GPU of the other node is repartitioned for the job that moves, which loses 60 s by the restart.
TEST(ScalingTest, ScaleDownRepartitionsForMovedJobs) {
  const ScalingReport report =
      Simulate(HalfEmptyNodes(), With(ScalingPolicy::kRepartitionScaleDown));
  EXPECT_EQ(report.moves, 1);
  EXPECT_EQ(NodeSeconds(report), (1325 - 15) + (10'520 - 210));
  EXPECT_DOUBLE_EQ(report.mean_wait, (120 + 180 + 120) / 3.0);
}

// The first node is empty from 1,125 on. A node with two GPUs is requested at 1,215, so no node is
// removed until 1,415. The second node is empty from 1,425 on and removed at 1,625.
TEST(ScalingTest, KeepsNodesForWindowAfterScaleUp) {
  ScalingOptions options = With(ScalingPolicy::kRepartition);
  options.pools = {{"one", 1, 16'000, 131'072, 10}, {"two", 2, 32'000, 262'144, 10}};
  for (const ScalingPolicy policy : kOfNos) {
    options.policy = policy;
    const ScalingReport report = Simulate({Whole(5, 1000), Whole(1205, 100, 2)}, options);
    EXPECT_EQ(NodeSeconds(report), (1415 - 15) + (1625 - 1215)) << ScalingPolicyName(policy);
  }
}

// Each GPU has only one 3g.40gb.
TEST(ScalingTest, StaticLayoutsPreventScaleDownOfBaseline) {
  const ScalingReport report = Simulate(HalfEmptyNodes(), With(kBaseline, "4g+3g"));
  EXPECT_EQ(report.moves, 0);
  EXPECT_EQ(NodeSeconds(report), (10'310 - 10) + (10'500 - 200));
}

// The first node is half empty from 1,110 on and removed at 1,310; its second job moves.
TEST(ScalingTest, BaselineDrainsUnderusedNodes) {
  const ScalingReport report =
      Simulate({Whole(5, 1000), Whole(5, 10'000), Whole(200, 10'000)}, With(kBaseline, "whole", 2));
  EXPECT_EQ(report.moves, 1);
  EXPECT_EQ(NodeSeconds(report), (1310 - 10) + (10'500 - 200));
  EXPECT_DOUBLE_EQ(report.mean_wait, (105 + 165 + 100) / 3.0);
}

// When the last job arrives, one node is empty and the other half empty. On the empty node it
// leaves both half empty, and one is drained. On the other node it fills it, and the empty node is
// removed.
TEST(ScalingTest, BaselineSpreadsUnlessPackingIsEnabled) {
  const std::vector<ScalingJob> jobs = {Whole(5, 10'000), Whole(5, 750), Whole(200, 500),
                                        Whole(900, 5000)};
  const ScalingReport spreads = Simulate(jobs, With(kBaseline, "whole", 2));
  EXPECT_EQ(spreads.moves, 1);
  EXPECT_EQ(NodeSeconds(spreads), (1100 - 10) + (10'370 - 200));
  EXPECT_DOUBLE_EQ(spreads.mean_wait, (165 + 105 + 100) / 4.0);
  const ScalingReport packs =
      Simulate(jobs, With(ScalingPolicy::kUnschedulablePacking, "whole", 2));
  EXPECT_EQ(packs.moves, 0);
  EXPECT_EQ(NodeSeconds(packs), (10'310 - 10) + (1000 - 200));
  EXPECT_DOUBLE_EQ(packs.mean_wait, (105 + 105 + 100) / 4.0);
}

// A job that needs a whole GPU arrives while two GPUs are half empty.
TEST(ScalingTest, MovesJobForPendingOneInsteadOfAddingNode) {
  std::vector<ScalingJob> jobs = HalfEmptyNodes();
  jobs.push_back(Whole(1500, 1000));
  ScalingOptions options = With(ScalingPolicy::kRepartitionScaleDown);
  options.window = 2000;  // no node is removed before
  const ScalingReport grows = Simulate(jobs, options);
  EXPECT_EQ(grows.max_nodes, 3);
  options.policy = ScalingPolicy::kAll;
  const ScalingReport moves = Simulate(jobs, options);
  EXPECT_EQ(moves.max_nodes, 2);
  EXPECT_EQ(moves.moves, 1);
  EXPECT_DOUBLE_EQ(moves.mean_wait, (3 * 120 + 60 + 70) / 4.0);
  EXPECT_LT(moves.cost, grows.cost);
}

TEST(ScalingTest, LeavesOutJobsThatFitOnNoNode) {
  std::vector<ScalingJob> jobs = {Whole(0, 100, 2), Whole(0, 100)};
  jobs.push_back(Whole(0, 100));
  jobs.back().cpu_milli = 16'001;
  for (const ScalingPolicy policy : ScalingPolicies()) {
    const ScalingReport report = Simulate(jobs, With(policy));
    EXPECT_EQ(report.jobs, 1U);
    EXPECT_EQ(report.left_out, 2U);
  }
}

TEST(ScalingTest, NoJobsNeedNoNodes) {
  for (const ScalingPolicy policy : ScalingPolicies()) {
    const ScalingReport report = Simulate({}, With(policy));
    EXPECT_EQ(report.node_hours, 0);
    EXPECT_EQ(report.mean_wait, 0);
  }
}

// At most ten nodes for eleven jobs: the last job runs after another one has ended.
TEST(ScalingTest, PoolsRespectMaximum) {
  const std::vector<ScalingJob> jobs(11, Whole(5, 1000));
  for (const ScalingPolicy policy : ScalingPolicies()) {
    const ScalingReport report = Simulate(jobs, With(policy));
    EXPECT_EQ(report.max_nodes, 10) << ScalingPolicyName(policy);
    EXPECT_EQ(report.jobs, 11U);
  }
}

// The invariant checker, which verifies every run, finds no violation.
TEST(ScalingTest, EveryPolicyServesAllJobsOfRandomBursts) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const auto jobs = BurstJobs({.days = 0.5, .jobs_a_day = 160, .slices = 0.6, .seed = seed});
    for (const ScalingPolicy policy : ScalingPolicies()) {
      ScalingOptions options;
      options.policy = policy;
      options.layout = "balanced";
      options.window = 120;
      const ScalingReport report = Simulate(jobs, options);
      EXPECT_EQ(report.jobs, jobs.size()) << ScalingPolicyName(policy) << ", seed " << seed;
      EXPECT_GE(report.cost, report.asked_gpu_hours);
      EXPECT_GT(report.mean_wait, 0);
      EXPECT_GE(report.p95_wait, 0);
      EXPECT_GE(report.max_nodes, 1);
    }
  }
}

TEST(ScalingTest, RejectsInvalidOptions) {
  const std::vector<ScalingJob> jobs = {Whole(0, 1)};
  ScalingOptions options = With(kBaseline, "5x2g");
  EXPECT_THAT(RunScaling(jobs, options).status().message(), HasSubstr("balanced"));
  options = With(kBaseline);
  options.window = -1;
  EXPECT_THAT(RunScaling(jobs, options).status().message(), HasSubstr("window"));
  options.pools.clear();
  EXPECT_THAT(RunScaling(jobs, options).status().message(), HasSubstr("pools"));
  EXPECT_THAT(ParseScalingPolicy("x").status().message(), HasSubstr("repartition+scale-down"));
  for (const ScalingPolicy policy : ScalingPolicies()) {
    EXPECT_EQ(ParseScalingPolicy(ScalingPolicyName(policy)).value_or(kBaseline), policy);
  }
}

TEST(ScalingTest, AcceptsDeprecatedNamesOfPolicies) {
  EXPECT_EQ(ParseScalingPolicy("recut").value_or(kBaseline), ScalingPolicy::kRepartition);
  EXPECT_EQ(ParseScalingPolicy("recut+scale-down").value_or(kBaseline),
            ScalingPolicy::kRepartitionScaleDown);
}

}  // namespace
}  // namespace nos::study
