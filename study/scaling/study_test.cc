#include "study/scaling/study.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace nos::study {
namespace {

using testing::HasSubstr;

ScalingReport Report(ScalingPolicy policy, double window, double cost, double wait,
                     const std::string& layout = "") {
  ScalingReport report;
  report.policy = policy;
  report.layout = layout;
  report.window = window;
  report.seed = 1;
  report.cost = cost;
  report.mean_wait = wait;
  return report;
}

const ScalingPair& PairOf(const std::vector<ScalingPair>& pairs, bool nos_is_tuned) {
  return *std::ranges::find(pairs, nos_is_tuned, &ScalingPair::nos_is_tuned);
}

TEST(ScalingStudyTest, TunedRunDoesNotWaitLonger) {
  const std::vector<ScalingReport> runs = {
      Report(ScalingPolicy::kUnschedulable, 600, 100, 50, "whole"),
      Report(ScalingPolicy::kUnschedulable, 600, 90, 60, "2x3g"),
      Report(ScalingPolicy::kUnschedulable, 1200, 130, 30, "2x3g"),
      Report(ScalingPolicy::kUnschedulable, 2400, 150, 20, "2x3g"),
      Report(ScalingPolicy::kRepartition, 300, 60, 70),
      Report(ScalingPolicy::kRepartition, 600, 80, 30),
      Report(ScalingPolicy::kRepartition, 1200, 81, 20),
  };
  const auto pairs = PairsAtEqualWaiting(runs, 600);
  ASSERT_EQ(pairs.size(), 2U);  // one per tuned side of the policy
  const ScalingPair& ours = PairOf(pairs, true);
  ASSERT_TRUE(ours.complete());
  EXPECT_EQ(ours.baseline->layout, "2x3g");  // the cheapest with this window
  EXPECT_EQ(ours.nos->cost, 80);             // the run with cost 60 would wait longer
  EXPECT_NEAR(ours.Saved(), 1 - 80 / 90.0, 1e-9);
  const ScalingPair& theirs = PairOf(pairs, false);
  ASSERT_TRUE(theirs.complete());
  EXPECT_EQ(theirs.nos->window, 600);
  EXPECT_EQ(theirs.baseline->cost, 130);
}

TEST(ScalingStudyTest, ReportsPairWithoutEqualWaiting) {
  const std::vector<ScalingReport> runs = {
      Report(ScalingPolicy::kUnschedulable, 600, 100, 10, "whole"),
      Report(ScalingPolicy::kAll, 600, 80, 30),
  };
  const auto pairs = PairsAtEqualWaiting(runs, 600);
  EXPECT_FALSE(PairOf(pairs, true).complete());
  EXPECT_TRUE(PairOf(pairs, true).baseline.has_value());
  EXPECT_TRUE(PairOf(pairs, false).complete());
  EXPECT_LT(PairOf(pairs, false).Saved(), 0.21);
  ScalingStudy study{"bursts", 600, runs, pairs};
  EXPECT_THAT(ToText(study), HasSubstr("0/1"));
  const Json json = ToJson(study);
  const JsonArray& reported = json.at("pairs").as_array();
  ASSERT_EQ(reported.size(), 2U);
  EXPECT_TRUE(reported[0].at("saved").is_null());
  EXPECT_TRUE(reported[0].at("nos").is_null());
  EXPECT_EQ(FindString(reported[0], "tuned"), "nos");
  EXPECT_TRUE(reported[1].at("saved").is_double());
  EXPECT_EQ(FindString(reported[1], "baseline", "layout"), "whole");
}

ScalingStudyOptions Small() {
  ScalingStudyOptions options;
  options.trace.bursts = {.days = 0.25, .jobs_a_day = 80, .slices = 0.5};
  options.policies = {ScalingPolicy::kUnschedulable, ScalingPolicy::kRepartition};
  options.layout = "2x3g";
  options.seeds = 2;
  return options;
}

TEST(ScalingStudyTest, RunsEveryPolicyAndSeed) {
  const auto study = RunScalingStudy(Small());
  ASSERT_TRUE(study.ok()) << study.status().message();
  ASSERT_EQ(study->runs.size(), 4U);
  EXPECT_EQ(study->runs[0].seed, 1U);
  EXPECT_EQ(study->runs[0].layout, "2x3g");
  EXPECT_EQ(study->runs[1].policy, ScalingPolicy::kRepartition);
  EXPECT_EQ(study->runs[1].layout, "");
  EXPECT_EQ(study->runs[3].seed, 2U);
  EXPECT_TRUE(study->pairs.empty());
  const auto again = RunScalingStudy(Small());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(WriteJsonPretty(ToJson(*study)), WriteJsonPretty(ToJson(*again)));
}

TEST(ScalingStudyTest, TableFitsHundredColumns) {
  std::vector<ScalingReport> runs;
  for (const ScalingPolicy policy : ScalingPolicies()) {
    runs.push_back(Report(policy, 600, 23'456.78, 1234.56, IsBaseline(policy) ? "balanced" : ""));
    runs.back().node_hours = 12'345.6;
    runs.back().p95_wait = 2345.6;
    runs.back().max_nodes = 123;
    runs.back().moves = 1234;
    runs.back().jobs = 8000;
    runs.back().asked_gpu_hours = 20'000;
    runs.push_back(runs.back());
    runs.back().seed = 2;
    runs.back().cost += 1000;
  }
  const ScalingStudy study{"/a/rather/long/folder/openb_pod_list_default.csv", 600, runs,
                           PairsAtEqualWaiting(runs, 600)};
  const std::string text = ToText(study);
  EXPECT_THAT(text, HasSubstr("repartition+scale-down"));
  EXPECT_THAT(text, HasSubstr("2/2"));
  for (const std::string_view line : Split(text, '\n')) EXPECT_LE(line.size(), 100U) << line;
}

TEST(ScalingStudyTest, RejectsInvalidOptions) {
  ScalingStudyOptions options = Small();
  options.seeds = 0;
  EXPECT_THAT(RunScalingStudy(options).status().message(), HasSubstr("seeds"));
  options = Small();
  options.policies = {ScalingPolicy::kRepartition};
  options.equal_waiting = true;
  EXPECT_THAT(RunScalingStudy(options).status().message(), HasSubstr("unschedulable"));
  options = Small();
  options.trace.bursts.slices = 2;
  EXPECT_THAT(RunScalingStudy(options).status().message(), HasSubstr("slices"));
  options = Small();
  options.policies = {ScalingPolicy::kRepartition};  // which uses no layout
  options.layout = "x";
  const Status unknown = RunScalingStudy(options).status();
  EXPECT_EQ(unknown.code(), Code::kInvalid);
  EXPECT_THAT(unknown.message(), HasSubstr("\"x\""));
}

}  // namespace
}  // namespace nos::study
