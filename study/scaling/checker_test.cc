#include "study/scaling/checker.h"

#include <gtest/gtest.h>

namespace nos::study {
namespace {

using Kind = StageAction::Kind;

// Two jobs on one GPU of a node that is ready at 100 and removed at 300; each runs from 100 to 200.
class CheckerTest : public ::testing::Test {
 protected:
  CheckerTest() {
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
  // The code of the first fault; "" if there is none.
  std::string Found() const {
    const auto fault = FindFault(jobs_, options_, log_);
    return fault ? fault->code : "";
  }

  StageOptions options_;
  std::vector<ScalingJob> jobs_;
  std::vector<StageAction> log_;
};

TEST_F(CheckerTest, AcceptsValidRun) { EXPECT_EQ(Found(), ""); }

TEST_F(CheckerTest, RejectsStartOnNodeThatIsNotReady) {
  log_[1].at = log_[1].runs_from = 99;
  EXPECT_EQ(Found(), faults::kNodeNotReady);
}

TEST_F(CheckerTest, RejectsOverlappingDevices) {
  log_[1].devices[0].start = 0;
  EXPECT_EQ(Found(), faults::kDevicesOverlap);
}

TEST_F(CheckerTest, RejectsSliceAtInvalidStart) {
  log_[1].devices[0].start = 3;
  EXPECT_EQ(Found(), faults::kWrongDevices);
}

TEST_F(CheckerTest, RejectsDevicesSmallerThanRequested) {
  log_[2].devices[0].profile = "3g.40gb";
  EXPECT_EQ(Found(), faults::kWrongDevices);
  log_[2].devices = {};
  EXPECT_EQ(Found(), faults::kWrongDevices);
}

TEST_F(CheckerTest, RejectsWholeGpuBesideSlice) {
  log_[2].devices[0] = {0, "", 0};
  EXPECT_EQ(Found(), faults::kDevicesOverlap);
}

TEST_F(CheckerTest, RejectsSliceForWholeGpuRequest) {
  jobs_[1] = {0, 100, 1000, 1024, 1, ""};
  EXPECT_EQ(Found(), faults::kWrongDevices);
}

TEST_F(CheckerTest, RejectsExceededCpuAndMemory) {
  jobs_[1].cpu_milli = 15'001;
  EXPECT_EQ(Found(), faults::kCpuExceeded);
  jobs_[1].cpu_milli = 1000;
  jobs_[1].memory_mib = 65'000;
  EXPECT_EQ(Found(), faults::kMemoryExceeded);
}

TEST_F(CheckerTest, RejectsJobThatEndsEarly) {
  log_[3].at = log_[4].at = 199;
  EXPECT_EQ(Found(), faults::kWrongDuration);
}

TEST_F(CheckerTest, RejectsJobThatRunsTwice) {
  log_.insert(log_.begin() + 5, log_[1]);
  log_[5].at = log_[5].runs_from = 200;
  EXPECT_EQ(Found(), faults::kStartedTwice);
}

TEST_F(CheckerTest, RejectsJobThatNeverEnds) {
  log_.pop_back();
  log_.pop_back();
  EXPECT_EQ(Found(), faults::kNeverEnded);
  EXPECT_EQ(FindFault(jobs_, options_, log_)->job, 1);
}

TEST_F(CheckerTest, RejectsNodeThatIsNeverRemoved) {
  log_.pop_back();
  EXPECT_EQ(Found(), faults::kNeverRemoved);
  EXPECT_EQ(ToText(*FindFault(jobs_, options_, log_)), "at 200 s, job -1, node 0: NeverRemoved");
}

TEST_F(CheckerTest, RejectsStartBeforeArrival) {
  jobs_[0].arrival = 101;
  EXPECT_EQ(Found(), faults::kStartedBeforeArrival);
}

TEST_F(CheckerTest, RejectsRemovalOfNodeInUse) {
  std::swap(log_[4], log_[5]);
  log_[4].at = 200;
  EXPECT_EQ(Found(), faults::kNodeRemovedInUse);
}

TEST_F(CheckerTest, RejectsPoolAboveMaximum) {
  log_.insert(log_.begin() + 1, {Kind::kAsk, 0, -1, 1, {}, 0, 0});
  EXPECT_EQ(Found(), faults::kPoolAboveMaximum);
}

TEST_F(CheckerTest, RejectsTimeGoingBackwards) {
  log_[5].at = 150;
  EXPECT_EQ(Found(), faults::kTimeGoesBack);
}

TEST_F(CheckerTest, MoveUsesNewDevicesAndFreesOldOnes) {
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
  EXPECT_EQ(Found(), "");
  log_[3].node = 0;
  EXPECT_EQ(Found(), faults::kMovedNowhere);
  log_[3].node = 1;
  log_[5].at = 200;
  EXPECT_EQ(Found(), faults::kWrongDuration);
}

}  // namespace
}  // namespace nos::study
