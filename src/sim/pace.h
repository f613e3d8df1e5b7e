// Runs a virtual world by the clock on the wall: what the sandbox does. Virtual time goes on in
// fixed steps, whatever the wall clock does meanwhile: as long as nobody asks for anything from
// outside, the same world paced twice at one speed does the same. Requests from outside reach the
// API server on threads of their own and are acted on at the next step.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "sim/world.h"

namespace nos::sim {

struct PaceOptions {
  double speed = 1;  // virtual seconds a second; > 0
  // How often `on_tick` is called, on the wall clock, when a step takes no longer than that.
  Duration tick = std::chrono::milliseconds(100);
  // On the calling thread: may look at the world. `reached`: the speed of the last seconds, below
  // `speed` where the machine cannot keep up.
  std::function<void(double reached)> on_tick;
  std::optional<Time> until;  // virtual: returns then, exactly
  // How far the world is behind already, on the wall clock; it makes up for that.
  Duration late{};
  // The wall clock: time since any fixed moment. Default: std::chrono::steady_clock.
  std::function<Duration()> wall;
  // How a pause is made. Default: std::this_thread::sleep_for.
  std::function<void(Duration)> pause;
};

// Virtual time that passes in one step: a tenth of a second, at a speed below 1 so much less that
// a step is never longer on the wall.
Duration PaceStep(double speed);

// Returns when asked to stop, or at `until`. A world that cannot keep up is never further behind
// than some seconds: its time then passes more slowly than asked for. The calling thread is the
// world's.
void Pace(World& world, const PaceOptions& options, const std::stop_token& stop);

}  // namespace nos::sim
