#include "sim/pace.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace nos::sim {
namespace {

constexpr Duration kStep = std::chrono::milliseconds(100);
// A lag up to this is caught up; beyond it, time passes more slowly.
constexpr Duration kMaxDebt = std::chrono::seconds(10);
constexpr Duration kWindow = std::chrono::seconds(2);  // interval for measuring the speed
// `on_tick` gets at most one part in this many of the time.
constexpr int kTickShare = 5;

Duration SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Measures the speed of the last seconds.
class Speedometer {
 public:
  Speedometer(double speed, Duration wall, Time world)
      : reached_(speed), wall_(wall), world_(world) {}

  double Read(Duration wall, Time world) {
    if (wall - wall_ < kWindow) return reached_;
    reached_ = ToSeconds(world - world_) / ToSeconds(wall - wall_);
    wall_ = wall;
    world_ = world;
    return reached_;
  }

 private:
  double reached_;
  Duration wall_;
  Time world_;
};

// Maps virtual time to wall-clock time.
class Schedule {
 public:
  Schedule(double speed, Duration wall, Time world) : speed_(speed), wall_(wall), world_(world) {}

  Duration WallOf(Time world) const {
    return wall_ + FromSeconds(ToSeconds(world - world_) / speed_);
  }
  // Drops the part of the lag that exceeds kMaxDebt.
  void Forgive(Duration wall, Time world) {
    const Duration debt = wall - WallOf(world);
    if (debt > kMaxDebt) wall_ += debt - kMaxDebt;
  }

 private:
  double speed_;
  Duration wall_;
  Time world_;
};

}  // namespace

Duration PaceStep(double speed) { return FromSeconds(ToSeconds(kStep) * std::min(1.0, speed)); }

void Pace(World& world, const PaceOptions& options, const std::stop_token& stop) {
  const auto wall = options.wall ? options.wall : SteadyNow;
  const auto pause =
      options.pause ? options.pause : [](Duration d) { std::this_thread::sleep_for(d); };
  const Duration step = PaceStep(options.speed);
  const Time end = options.until.value_or(Time::max());
  const Duration begin = wall();
  Schedule schedule(options.speed, begin - options.late, world.Now());
  Speedometer speedometer(options.speed, begin, world.Now());
  Time next = world.Now();
  Duration next_tick = begin;
  while (!stop.stop_requested()) {
    Duration now = wall();
    if (now >= next_tick) {
      if (options.on_tick) options.on_tick(speedometer.Read(now, world.Now()));
      const Duration after = wall();
      next_tick = after + std::max(options.tick, (after - now) * kTickShare);
      now = after;
    } else if (now >= schedule.WallOf(next)) {
      world.SkipTo(next);
      if (next >= end) return;
      next = std::min(next + step, end);
      schedule.Forgive(wall(), world.Now());
    } else {
      pause(std::min(next_tick, schedule.WallOf(next)) - now);
    }
  }
}

}  // namespace nos::sim
