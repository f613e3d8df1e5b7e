// What the sandbox shows, read off a virtual world.
#pragma once

#include "cmd/sandbox_view.h"
#include "sim/world.h"

namespace nos::cmd {

// `started`: when the world's clock began to count for people. `hint` and `speed` are left to the
// caller.
ViewModel Observe(sim::World& world, Time started);

}  // namespace nos::cmd
