#include "sim/run_scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace nos::sim {
namespace {

ScenarioReport RunText(std::string_view text) {
  SetLogLevel(LogLevel::kError);
  const auto scenario = ParseScenario(text, "a.scenario");
  EXPECT_TRUE(scenario.ok()) << scenario.status().ToString();
  return scenario.ok() ? RunScenario(*scenario) : ScenarioReport();
}

std::string Failures(const ScenarioReport& report) {
  std::string out;
  for (const auto& failure : report.failures) out += FormatFailure(report, failure);
  return out;
}

TEST(ScenarioTest, PassesIfAllExpectationsHold) {
  const ScenarioReport report = RunText(R"(
node n1
  gpu 0: 3g.20gb@4 used by old
pod a 3g.20gb run=30s
plan
expect a placed on n1 and created 1
expect gpu n1/0: 3g.20gb@4 used, 3g.20gb@0 new
run 20s
expect a running on n1 and old running
run 1m
expect a succeeded
)");
  EXPECT_EQ(Failures(report), "");
}

TEST(ScenarioTest, FailureShowsExpectedAndActual) {
  const ScenarioReport report = RunText(R"(node n1
pod a 3g.20gb
expect a placed
plan
expect a placed on n2
expect created 3
expect gpu n1/0: 1g.5gb@0 new
run 1m
expect a waiting
expect b running
cordon n7
)");
  ASSERT_EQ(report.failures.size(), 7u) << Failures(report);
  EXPECT_EQ(FormatFailure(report, report.failures[0]),
            "a.scenario:3: expect a placed\n"
            "  expected: a plan\n"
            "  actual:   there is no 'plan' before this line\n");
  EXPECT_THAT(report.failures[1].actual, testing::StartsWith("placed on n1 (3g.20gb@"));
  EXPECT_EQ(report.failures[1].expected, "placed on n2");
  EXPECT_EQ(report.failures[2].actual, "created 1");
  EXPECT_THAT(report.failures[3].actual, testing::HasSubstr("3g.20gb@"));
  EXPECT_EQ(report.failures[4].actual, "running on n1");
  EXPECT_EQ(report.failures[5].actual, "gone: there is no such pod");
  EXPECT_EQ(report.failures[6].actual, "not found: there is no node n7");
}

TEST(ScenarioTest, CountsPoolsAndReportsUnknownOnes) {
  const ScenarioReport report = RunText(R"(pool a100 nodes=2 max=3
expect pool a100 nodes 2 and pool a100 wanted 3
expect pool none nodes 0
fail pool none late
)");
  ASSERT_EQ(report.failures.size(), 3u) << Failures(report);
  EXPECT_EQ(report.failures[0].actual, "pool a100 wanted 2");
  EXPECT_EQ(report.failures[1].actual, "there is no such pool");
  EXPECT_EQ(report.failures[2].actual, "not found: there is no pool none");
}

TEST(ScenarioTest, ReportsImpossibleCluster) {
  const ScenarioReport report = RunText(R"(node n1
  gpu 0: 3g.20gb@4 free, 4g.20gb@4 free
expect running 0
)");
  ASSERT_EQ(report.failures.size(), 1u);
  EXPECT_THAT(report.failures[0].actual, testing::HasSubstr("4g.20gb@4"));
}

TEST(ScenarioTest, DeviceGivenTwiceIsAViolation) {
  const ScenarioReport report = RunText(R"(
node n1 dra
claim a 1g.5gb
claim b 3g.20gb
pod p claim=a node=n1
pod q claim=b node=n1
allocate a n1/gpu-0-mig-1g5gb-19-1
run 10s
allocate b n1/gpu-0-mig-3g20gb-9-0
run 1m
expect p running and q starting
expect gpu n1/0: 1g.5gb@1 used
)");
  ASSERT_GE(report.failures.size(), 2u) << Failures(report);
  EXPECT_THAT(report.failures[0].actual, testing::HasSubstr("counter-set/memory-slice-1"));
  EXPECT_THAT(report.failures[1].actual, testing::HasSubstr("overlaps")) << "seen by the driver";
}

TEST(ScenarioTest, NodeWithDraStartsEmpty) {
  const ScenarioReport report = RunText("node n1 dra\n  gpu 0: 1g.5gb@0 free\nexpect running 0\n");
  ASSERT_EQ(report.failures.size(), 1u) << Failures(report);
  EXPECT_EQ(report.failures[0].line, 0);
}

}  // namespace
}  // namespace nos::sim
