// Runs a virtual world by the clock on the wall: what the sandbox does. Requests from outside reach
// the API server on threads of their own and are acted on at once.
#pragma once

#include <functional>
#include <stop_token>

#include "sim/world/world.h"

namespace nos::sim {

struct PaceOptions {
  double speed = 1;  // virtual seconds a second; > 0
  // How often `on_tick` is called, on the wall clock; also how late a request from outside may be
  // noticed that touches no pod.
  Duration tick = std::chrono::milliseconds(100);
  std::function<void()> on_tick;  // on the calling thread: may look at the world
  // The wall clock: time since any fixed moment. Default: std::chrono::steady_clock.
  std::function<Duration()> wall;
};

// Returns when asked to stop. The calling thread is the world's.
void Pace(World& world, const PaceOptions& options, const std::stop_token& stop);

}  // namespace nos::sim
