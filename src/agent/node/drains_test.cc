#include "agent/node/drains.h"

#include <gtest/gtest.h>

#include <chrono>

namespace nos::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kSlice = "nvidia.com/mig-1g.5gb";
constexpr Duration kSettle = milliseconds(200), kTimeout = seconds(15);

class DrainsTest : public ::testing::Test {
 protected:
  void NodeShows(int64_t devices) { node_.allocatable[kSlice] = Quantity::FromValue(devices); }
  void Look() { drains_.Look(unwanted_, {{kSlice, 1}}, node_); }
  void OnWritten(bool refused = false) {
    drains_.OnWritten(unwanted_, {{kSlice, 1}}, node_, refused, now_);
  }

  Time now_{seconds(1000)};
  cluster::Node node_;
  Drains::Instances unwanted_{{"x", kSlice}};
  Drains drains_{{kSettle, kTimeout}};
};

TEST_F(DrainsTest, IsDrainedAMomentAfterNodeStoppedCounting) {
  NodeShows(1);
  OnWritten();
  EXPECT_FALSE(drains_.Drained("x", now_));
  EXPECT_EQ(drains_.DrainedAt("x"), now_ + kSettle);
  EXPECT_TRUE(drains_.Drained("x", now_ + kSettle));
}

TEST_F(DrainsTest, InstanceDoesNotDrainBeforeNodeIsWritten) {
  NodeShows(1);
  Look();
  EXPECT_FALSE(drains_.Drained("x", now_ + kTimeout * 10));
}

TEST_F(DrainsTest, RestartsDrainWhenNodeCountsInstanceAgain) {
  NodeShows(1);
  OnWritten();
  NodeShows(2);
  now_ += kSettle / 2;
  Look();
  NodeShows(1);
  OnWritten();
  EXPECT_EQ(drains_.DrainedAt("x"), now_ + kSettle);
}

TEST_F(DrainsTest, ForgetsInstanceThatIsWantedAgain) {
  NodeShows(1);
  OnWritten();
  unwanted_.clear();
  Look();
  unwanted_ = {{"x", kSlice}};
  now_ += kTimeout;
  Look();
  EXPECT_FALSE(drains_.Drained("x", now_));
}

TEST_F(DrainsTest, InstanceStaysAsLongAsNodeCountsIt) {
  NodeShows(2);
  OnWritten();
  EXPECT_EQ(drains_.DrainedAt("x"), Time::max());
  EXPECT_FALSE(drains_.Drained("x", now_ + kTimeout * 10));
}

TEST_F(DrainsTest, IsDrainedAfterTimeoutIfNodeCannotBeWritten) {
  NodeShows(2);
  OnWritten(/*refused=*/true);
  EXPECT_FALSE(drains_.Drained("x", now_ + kTimeout - kSettle));
  EXPECT_TRUE(drains_.Drained("x", now_ + kTimeout));
}

}  // namespace
}  // namespace nos::agent
