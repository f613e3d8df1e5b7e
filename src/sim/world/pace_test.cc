// The world paced by a wall clock that the test turns.
#include "sim/world/pace.h"

#include <gtest/gtest.h>

#include "base/log.h"

namespace nos::sim {
namespace {

using std::chrono::milliseconds;

constexpr Duration kRounding = std::chrono::nanoseconds(2);

class PaceTest : public testing::Test {
 protected:
  PaceTest() { SetLogLevel(LogLevel::kError); }

  // Runs for so many ticks. Reading the wall clock takes a millisecond of its time.
  void Run(double speed, int ticks, const std::function<void()>& each = {}) {
    std::stop_source stop;
    PaceOptions options;
    options.speed = speed;
    options.tick = milliseconds(1);
    options.wall = [this] { return wall_ += milliseconds(1); };
    options.on_tick = [&] {
      ticks_.push_back(wall_);
      times_.push_back(world_.Now());
      if (each) each();
      if (--ticks == 0) stop.request_stop();
    };
    Pace(world_, options, stop.get_token());
  }

  World world_{WorldOptions(), gpu::Catalogue::Builtin()};
  Duration wall_{};
  std::vector<Duration> ticks_;
  std::vector<Time> times_;
};

TEST_F(PaceTest, VirtualTimePassesAtTheSpeedAsked) {
  Run(50, 20);
  ASSERT_EQ(times_.size(), 20u);
  // Between two ticks the clocks are read in the same places.
  for (size_t i = 2; i < times_.size(); ++i) {
    const Duration expected = 50 * (ticks_[i] - ticks_[i - 1]);
    EXPECT_LE(std::chrono::abs(times_[i] - times_[i - 1] - expected), kRounding) << i;
    EXPECT_GE(ticks_[i] - ticks_[i - 1], Duration(milliseconds(1)));
  }
}

TEST_F(PaceTest, WhatIsAskedFromOutsideIsActedOn) {
  ASSERT_TRUE(world_.AddNode({.name = "n", .gpus = {{"A30", {}}}}).ok());
  ASSERT_TRUE(world_.Boot().ok());
  world_.StartControllers();
  kube::Client user(world_.api());
  bool created = false;
  Run(1000, 40, [&] {
    if (created) return;
    created = true;
    const Json pod = PodObject({.name = "p", .containers = {{{"1g.6gb", 1}}}});
    EXPECT_TRUE(user.Create(kube::kPods, "default", pod).ok());
  });
  const auto pod = world_.FindPod("p");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->phase, "Running");
}

TEST_F(PaceTest, StopsAtOnceWhenAskedBefore) {
  std::stop_source stop;
  stop.request_stop();
  const Time before = world_.Now();
  Pace(world_, {}, stop.get_token());
  EXPECT_EQ(world_.Now(), before);
}

}  // namespace
}  // namespace nos::sim
