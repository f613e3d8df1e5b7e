// Reads the model of the live view from a virtual world.
#pragma once

#include <span>

#include "cmd/sandbox_view.h"
#include "codec/json.h"
#include "sim/world.h"

namespace nos::cmd {

// `started`: start of the time that is displayed, after booting. The caller sets `hint` and
// `speed`. `decisions`: records of the collector.
ViewModel Observe(sim::World& world, Time started, std::span<const Json> decisions);

}  // namespace nos::cmd
