// Pace with a simulated wall clock.
#include "sim/pace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"

namespace nos::sim {
namespace {

using std::chrono::milliseconds;

class PaceTest : public testing::Test {
 protected:
  PaceTest() { SetLogLevel(LogLevel::kError); }

  // A wall clock that advances with the world's pauses; each reading costs `look`.
  PaceOptions Options(double speed, Duration look = {}) {
    PaceOptions options;
    options.speed = speed;
    options.wall = [this, look] { return wall_ += look; };
    options.pause = [this](Duration time) {
      EXPECT_GT(time, Duration());
      wall_ += time;
    };
    return options;
  }
  // Runs for `ticks` ticks.
  void Run(PaceOptions options, int ticks, const std::function<void()>& each = {}) {
    std::stop_source stop;
    options.on_tick = [&](double reached) {
      ticks_.push_back(wall_);
      times_.push_back(world_->Now());
      reached_ = reached;
      if (each) each();
      if (--ticks == 0) stop.request_stop();
    };
    Pace(*world_, options, stop.get_token());
  }
  void StartCluster() {
    ASSERT_TRUE(world_->AddNode({.name = "n", .gpus = {{"A30", {}}}}).ok());
    ASSERT_TRUE(world_->Boot().ok());
    world_->StartControllers();
  }

  std::unique_ptr<World> world_ =
      std::make_unique<World>(WorldOptions(), gpu::Catalogue::Builtin());
  Duration wall_{};
  std::vector<Duration> ticks_;
  std::vector<Time> times_;
  double reached_ = 0;
};

TEST_F(PaceTest, VirtualTimePassesAtTheRequestedSpeed) {
  for (const double speed : {0.5, 1.0, 50.0}) {
    times_.clear();
    ticks_.clear();
    Run(Options(speed), 20);
    ASSERT_EQ(times_.size(), 20u);
    const double ratio =
        ToSeconds(times_.back() - times_.front()) / ToSeconds(ticks_.back() - ticks_.front());
    EXPECT_NEAR(ratio, speed, 0.1 * speed);
    EXPECT_DOUBLE_EQ(reached_, speed);
  }
}

TEST_F(PaceTest, ServesRequestsFromOutside) {
  StartCluster();
  kube::Client user(world_->api());
  bool created = false;
  Run(Options(1000), 40, [&] {
    if (created) return;
    created = true;
    const Json pod = PodObject({.name = "p", .containers = {{{"1g.6gb", 1}}}});
    EXPECT_TRUE(user.Create(kube::kPods, "default", pod).ok());
  });
  const auto pod = world_->FindPod("p");
  ASSERT_NE(pod, nullptr);
  EXPECT_EQ(pod->phase, "Running");
}

TEST_F(PaceTest, VirtualTimeSlowsDownOnSlowMachine) {
  const Time before = world_->Now();
  // Three readings of the clock per step limit the speed to some 300 steps of a tenth of a second
  // per second.
  Run(Options(1000, milliseconds(1)), 100);
  const double real = ToSeconds(times_.back() - before) / ToSeconds(ticks_.back());
  EXPECT_LT(real, 100);
  EXPECT_NEAR(reached_, real, 0.2 * real);
  for (size_t i = 1; i < ticks_.size(); ++i) {
    EXPECT_LE(ticks_[i] - ticks_[i - 1], Duration(milliseconds(120))) << "it hears of a stop late";
  }
}

TEST_F(PaceTest, CatchesUpAndEndsOnTime) {
  PaceOptions options = Options(1);
  options.late = std::chrono::seconds(4);
  options.until = world_->Now() + milliseconds(5050);
  Pace(*world_, options, {});
  EXPECT_EQ(world_->Now(), *options.until);
  EXPECT_EQ(wall_, Duration(milliseconds(1050)));
}

TEST_F(PaceTest, RunDoesNotDependOnTheWallClock) {
  const auto log = [this](Duration look, Time start) {
    WorldOptions options;
    options.start = start;
    world_ = std::make_unique<World>(options, gpu::Catalogue::Builtin());
    StartCluster();
    for (int i = 0; i < 6; ++i) {
      const Time at = world_->Now() + i * milliseconds(1717);
      world_->Submit({.name = fmt::format("p{}", i),
                      .containers = {{{i % 2 == 0 ? "1g.6gb" : "2g.12gb", 1}}},
                      .run = std::chrono::seconds(20)},
                     at);
    }
    std::string text;
    world_->log().SetSink([&](std::string_view line) { text += std::string(line) + "\n"; });
    PaceOptions pace = Options(10, look);
    pace.until = world_->Now() + std::chrono::minutes(2);
    Pace(*world_, pace, {});
    world_->log().SetSink({});
    return text;
  };
  const Time start(std::chrono::seconds(1'767'225'600));
  const std::string first = log({}, start);
  EXPECT_GT(first.size(), 1000u);
  EXPECT_EQ(log(milliseconds(7), start + std::chrono::seconds(3)), first);
}

TEST_F(PaceTest, StopsAtOnceIfAlreadyRequested) {
  std::stop_source stop;
  stop.request_stop();
  const Time before = world_->Now();
  Pace(*world_, {}, stop.get_token());
  EXPECT_EQ(world_->Now(), before);
}

}  // namespace
}  // namespace nos::sim
