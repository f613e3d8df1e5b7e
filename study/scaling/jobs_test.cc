#include "study/scaling/jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <sstream>

namespace nos::study {
namespace {

using testing::HasSubstr;

constexpr std::string_view kHeader =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n";

Result<std::vector<ScalingJob>> Parse(const std::string& rows, OpenbWindow window) {
  const std::string text = std::string(kHeader) + rows;
  return OpenbJobs({"pods.csv", text}, window);
}

TEST(ScalingJobsTest, ConvertsFractionToSmallestSufficientSlice) {
  EXPECT_EQ(SliceFor(142, false), "1g.10gb");
  EXPECT_EQ(SliceFor(143, false), "2g.20gb");
  EXPECT_EQ(SliceFor(320, false), "3g.40gb");
  EXPECT_EQ(SliceFor(470, false), "4g.40gb");
  EXPECT_EQ(SliceFor(572, false), "");
  EXPECT_EQ(SliceFor(1000, false), "");
  EXPECT_EQ(SliceFor(125, true), "1g.10gb");
  EXPECT_EQ(SliceFor(126, true), "2g.20gb");
  EXPECT_EQ(SliceFor(470, true), "3g.40gb");
  EXPECT_EQ(SliceFor(501, true), "");
}

TEST(ScalingJobsTest, ReplaysOpenbPodsOfWindow) {
  const auto jobs = Parse(
      "later,1000,1024,1,470,86500,86600,86510\n"  // arrives 100 s into the second day, runs 90 s
      "before,2000,2048,2,1000,100,90000,100\n"    // runs already, for another 3,600 s
      "outlives,3000,1024,1,1000,172700,999999,172700\n"  // arrives 100 s before the end
      "gone,1000,1024,1,1000,10,20,10\n"
      "too-late,1000,1024,1,1000,172800,172900,172800\n"
      "cpu-only,1000,1024,0,0,86500,86600,86500\n"
      "never-ran,1000,1024,1,1000,86500,86600,\n",
      {.first_day = 1, .days = 1});
  ASSERT_TRUE(jobs.ok()) << jobs.status().message();
  ASSERT_EQ(jobs->size(), 3U);
  EXPECT_EQ((*jobs)[0].gpus, 2);
  EXPECT_EQ((*jobs)[0].arrival, 0);
  EXPECT_EQ((*jobs)[0].duration, 3600);
  EXPECT_EQ((*jobs)[1].slice, "4g.40gb");
  EXPECT_EQ((*jobs)[1].gpus, 0);
  EXPECT_EQ((*jobs)[1].arrival, 100);
  EXPECT_EQ((*jobs)[1].duration, 90);
  EXPECT_EQ((*jobs)[1].cpu_milli, 1000);
  EXPECT_EQ((*jobs)[2].gpus, 1);
  EXPECT_EQ((*jobs)[2].duration, 100);
}

TEST(ScalingJobsTest, ReportsErrorsWithLine) {
  const auto wrong = Parse("a,1000,1024,1,1000,x,20,10\n", {});
  EXPECT_THAT(wrong.status().message(), HasSubstr("pods.csv:2: creation_time"));
  const auto empty = Parse("a,1000,1024,1,1000,10,20,10\n", {.first_day = 5, .days = 2});
  EXPECT_EQ(empty.status().message(), "pods.csv: no pod with a GPU runs from day 5 on for 2 days");
  const auto no_times = OpenbJobs({"p.csv", "name,num_gpu\na,1\n"}, {});
  EXPECT_THAT(no_times.status().message(), HasSubstr("missing"));
}

// The expected numbers were computed from the published list with another program.
TEST(ScalingJobsTest, ReplaysWeekOfPublishedList) {
  constexpr const char* kList = "test/data/openb/openb_pod_list_default.csv";
  std::ifstream file(kList);
  ASSERT_TRUE(file.good()) << kList;
  std::stringstream text;
  text << file.rdbuf();
  const std::string list = text.str();
  const auto jobs = OpenbJobs({"list.csv", list}, {});
  ASSERT_TRUE(jobs.ok()) << jobs.status().message();
  EXPECT_EQ(jobs->size(), 1098U);
  EXPECT_EQ(std::ranges::count_if(*jobs, [](const ScalingJob& job) { return !job.slice.empty(); }),
            276);
  double gpu_hours = 0;
  for (const ScalingJob& job : *jobs) gpu_hours += job.duration / 3600 * SlotsOf(job) / 8;
  EXPECT_NEAR(gpu_hours, 5616.6, 0.1);
}

TEST(ScalingJobsTest, BurstsFollowOptions) {
  const auto jobs = BurstJobs({.days = 200, .slices = 0.5, .seed = 3});
  EXPECT_TRUE(std::ranges::is_sorted(jobs, {}, &ScalingJob::arrival));
  EXPECT_NEAR(static_cast<double>(jobs.size()), 200 * 116, 200 * 116 * 0.1);
  int slices = 0;
  std::set<int> counts;
  for (const ScalingJob& job : jobs) {
    EXPECT_GT(job.duration, 0);
    EXPECT_NE(job.gpus > 0, !job.slice.empty());
    EXPECT_GT(job.cpu_milli, 0);
    slices += job.slice.empty() ? 0 : 1;
    if (job.gpus > 0) counts.insert(job.gpus);
  }
  EXPECT_NEAR(slices / static_cast<double>(jobs.size()), 0.5, 0.1);
  EXPECT_EQ(counts, (std::set<int>{1, 2, 4, 8}));
}

TEST(ScalingJobsTest, EqualSeedsGiveEqualBursts) {
  const auto once = BurstJobs({.days = 3, .seed = 7}), again = BurstJobs({.days = 3, .seed = 7});
  const auto other = BurstJobs({.days = 3, .seed = 8});
  ASSERT_EQ(once.size(), again.size());
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i].arrival, again[i].arrival);
    EXPECT_EQ(once[i].duration, again[i].duration);
  }
  EXPECT_NE(once.front().arrival, other.front().arrival);
}

TEST(ScalingJobsTest, CountsSlotsOfJob) {
  EXPECT_EQ(SlotsOf({.gpus = 2, .slice = {}}), 16);
  EXPECT_EQ(SlotsOf({.gpus = 0, .slice = "3g.40gb"}), 4);
  EXPECT_EQ(SlotsOf({.gpus = 0, .slice = "1g.10gb"}), 1);
}

}  // namespace
}  // namespace nos::study
