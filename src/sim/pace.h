// Runs a virtual world at the pace of the wall clock, for the sandbox. Virtual time advances in
// fixed steps that do not depend on the wall clock: without requests from outside, the same world
// paced twice at one speed behaves identically. Requests from outside reach the API server on
// threads of their own, and controllers react at the next step.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>

#include "sim/world.h"

namespace nos::sim {

struct PaceOptions {
  double speed = 1;  // virtual seconds per second; > 0
  // Wall-clock interval between calls of `on_tick`, unless a step takes longer.
  Duration tick = std::chrono::milliseconds(100);
  // Called on the calling thread; may read the world. `reached`: the speed of the last seconds,
  // which is below `speed` if the machine is too slow.
  std::function<void(double reached)> on_tick;
  std::optional<Time> until;  // virtual time at which Pace returns, exactly
  // Initial lag of the world behind the wall clock; Pace catches up.
  Duration late{};
  // The wall clock, as time since a fixed moment. Default: std::chrono::steady_clock.
  std::function<Duration()> wall;
  // Sleeps. Default: std::this_thread::sleep_for.
  std::function<void(Duration)> pause;
};

// Virtual time per step: a tenth of a second; at a speed below 1 less, so that a step takes at most
// a tenth of a second of wall time.
Duration PaceStep(double speed);

// Returns after a stop request or at `until`. The lag of a world that is too slow is limited to
// some seconds; beyond that, its time passes more slowly than requested. Must be called on the
// world's thread.
void Pace(World& world, const PaceOptions& options, const std::stop_token& stop);

}  // namespace nos::sim
