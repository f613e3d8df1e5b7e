#include "cmd/daemon/planning_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace nos::cmd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class PlanningRulesTest : public ::testing::Test {
 protected:
  ~PlanningRulesTest() override { std::filesystem::remove(path_); }

  // One file per test, because tests run in parallel.
  const std::string path_ = ::testing::TempDir() + "nos-planning-rules-" +
                            ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(PlanningRulesTest, MissingSchedulerConfigurationMeansTheDefault) {
  ::testing::internal::CaptureStderr();
  const auto rules = ReadPlanningRules({path_, "gang-scheduler", ""});
  const std::string log = ::testing::internal::GetCapturedStderr();
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  EXPECT_THAT((*rules)->profiles, IsEmpty());
  EXPECT_THAT((*rules)->partitioning_schedulers, IsEmpty());
  EXPECT_EQ(&(*rules)->Choice("gang-scheduler").For(cluster::Pod()), (*rules)->usual.get());
  EXPECT_THAT(log, AllOf(HasSubstr("warning"), HasSubstr("is missing"), HasSubstr(path_)));
}

TEST_F(PlanningRulesTest, SchedulerConfigurationThatAppearsIsRead) {
  std::ofstream(path_) << "apiVersion: kubescheduler.config.k8s.io/v1\n"
                          "kind: KubeSchedulerConfiguration\n"
                          "profiles: [{schedulerName: mine}]\n";
  const auto rules = ReadPlanningRules({path_, "mine", ""});
  ASSERT_TRUE(rules.ok()) << rules.status().message();
  ASSERT_EQ((*rules)->profiles.size(), 1U);
  EXPECT_EQ((*rules)->profiles[0].scheduler_name, "mine");
  EXPECT_EQ(ReadPlanningRules({path_, "other", ""}).status().code(), Code::kInvalid);
}

TEST_F(PlanningRulesTest, InvalidSchedulerConfigurationIsAnError) {
  std::ofstream(path_) << "kind: Pod\n";
  EXPECT_EQ(ReadPlanningRules({path_, "", ""}).status().code(), Code::kInvalid);
}

TEST_F(PlanningRulesTest, MissingGpuModelsAreAnError) {
  EXPECT_EQ(ReadPlanningRules({"", "", path_}).status().code(), Code::kNotFound);
}

}  // namespace
}  // namespace nos::cmd
