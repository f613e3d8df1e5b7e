// Reads the model of the live view from a virtual world.
#pragma once

#include "cmd/sandbox_view.h"
#include "sim/world.h"

namespace nos::cmd {

// `started`: start of the time that is displayed, after booting. The caller sets `hint` and
// `speed`.
ViewModel Observe(sim::World& world, Time started);

}  // namespace nos::cmd
