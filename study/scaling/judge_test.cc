#include "study/scaling/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nos::study {
namespace {

using testing::HasSubstr;
using Kind = StageAction::Kind;

// Two jobs on one GPU of a node that is ready at 100 and removed at 300; each runs from 100 to 200.
class JudgeTest : public ::testing::Test {
 protected:
  JudgeTest() {
    options_.pools = {{"one", 1, 16'000, 65'536, 1}};
    options_.start_seconds = 100;
    options_.restart_seconds = 10;
    jobs_ = {{0, 100, 1000, 1024, 0, "3g.40gb"}, {0, 100, 1000, 1024, 0, "4g.40gb"}};
    log_ = {
        {Kind::kAsk, 0, -1, 0, {}, 0, 0},
        {Kind::kStart, 100, 0, 0, {{0, "3g.40gb", 4}}, 100},
        {Kind::kStart, 100, 1, 0, {{0, "4g.40gb", 0}}, 100},
        {Kind::kEnd, 200, 0, 0},
        {Kind::kEnd, 200, 1, 0},
        {Kind::kRemove, 300, -1, 0},
    };
  }
  std::string Fault() const { return JudgeRun(jobs_, options_, log_).message(); }

  StageOptions options_;
  std::vector<ScalingJob> jobs_;
  std::vector<StageAction> log_;
};

TEST_F(JudgeTest, AcceptsValidRun) { EXPECT_EQ(Fault(), ""); }

TEST_F(JudgeTest, RejectsStartOnNodeThatIsNotReady) {
  log_[1].at = log_[1].runs_from = 99;
  EXPECT_THAT(Fault(), HasSubstr("the node is not there"));
}

TEST_F(JudgeTest, RejectsOverlappingDevices) {
  log_[1].devices[0].start = 0;
  EXPECT_THAT(Fault(), HasSubstr("devices overlap"));
}

TEST_F(JudgeTest, RejectsSliceAtInvalidStart) {
  log_[1].devices[0].start = 3;
  EXPECT_THAT(Fault(), HasSubstr("not the devices"));
}

TEST_F(JudgeTest, RejectsDevicesSmallerThanRequested) {
  log_[2].devices[0].profile = "3g.40gb";
  EXPECT_THAT(Fault(), HasSubstr("not the devices"));
  log_[2].devices = {};
  EXPECT_THAT(Fault(), HasSubstr("not the devices"));
}

TEST_F(JudgeTest, RejectsWholeGpuBesideSlice) {
  log_[2].devices[0] = {0, "", 0};
  EXPECT_THAT(Fault(), HasSubstr("devices overlap"));
}

TEST_F(JudgeTest, RejectsSliceForWholeGpuRequest) {
  jobs_[1] = {0, 100, 1000, 1024, 1, ""};
  EXPECT_THAT(Fault(), HasSubstr("not the devices"));
}

TEST_F(JudgeTest, RejectsExceededCpuAndMemory) {
  jobs_[1].cpu_milli = 15'001;
  EXPECT_THAT(Fault(), HasSubstr("more cpu"));
  jobs_[1].cpu_milli = 1000;
  jobs_[1].memory_mib = 65'000;
  EXPECT_THAT(Fault(), HasSubstr("more memory"));
}

TEST_F(JudgeTest, RejectsJobThatEndsEarly) {
  log_[3].at = log_[4].at = 199;
  EXPECT_THAT(Fault(), HasSubstr("it has not run as long"));
}

TEST_F(JudgeTest, RejectsJobThatRunsTwice) {
  log_.insert(log_.begin() + 5, log_[1]);
  log_[5].at = log_[5].runs_from = 200;
  EXPECT_THAT(Fault(), HasSubstr("it has started before"));
}

TEST_F(JudgeTest, RejectsJobThatNeverEnds) {
  log_.pop_back();
  log_.pop_back();
  EXPECT_THAT(Fault(), HasSubstr("job 1 has not ended"));
}

TEST_F(JudgeTest, RejectsNodeThatIsNeverRemoved) {
  log_.pop_back();
  EXPECT_THAT(Fault(), HasSubstr("node 0 has not gone"));
}

TEST_F(JudgeTest, RejectsStartBeforeArrival) {
  jobs_[0].arrival = 101;
  EXPECT_THAT(Fault(), HasSubstr("it has not come yet"));
}

TEST_F(JudgeTest, RejectsRemovalOfNodeInUse) {
  std::swap(log_[4], log_[5]);
  log_[4].at = 200;
  EXPECT_THAT(Fault(), HasSubstr("jobs run on a node that goes"));
}

TEST_F(JudgeTest, RejectsPoolAboveMaximum) {
  log_.insert(log_.begin() + 1, {Kind::kAsk, 0, -1, 1, {}, 0, 0});
  EXPECT_THAT(Fault(), HasSubstr("at its maximum"));
}

TEST_F(JudgeTest, RejectsTimeGoingBackwards) {
  log_[5].at = 150;
  EXPECT_THAT(Fault(), HasSubstr("time goes back"));
}

TEST_F(JudgeTest, MoveUsesNewDevicesAndFreesOldOnes) {
  options_.pools[0].max = 2;
  log_ = {
      {Kind::kAsk, 0, -1, 0, {}, 0, 0},
      {Kind::kAsk, 0, -1, 1, {}, 0, 0},
      {Kind::kStart, 100, 0, 0, {{0, "3g.40gb", 0}}, 100},
      {Kind::kMove, 150, 0, 1, {{0, "3g.40gb", 4}}},
      {Kind::kStart, 150, 1, 0, {{0, "4g.40gb", 0}}, 150},
      {Kind::kEnd, 210, 0, 1},  // restarting takes 10 s
      {Kind::kEnd, 250, 1, 0},
      {Kind::kRemove, 300, -1, 0},
      {Kind::kRemove, 300, -1, 1},
  };
  EXPECT_EQ(Fault(), "");
  log_[3].node = 0;
  EXPECT_THAT(Fault(), HasSubstr("it is there already"));
  log_[3].node = 1;
  log_[5].at = 200;
  EXPECT_THAT(Fault(), HasSubstr("it has not run as long"));
}

}  // namespace
}  // namespace nos::study
