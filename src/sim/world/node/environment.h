// Shared parts of a virtual world: time, the event queue, the log, the faults, the API server. One
// thread, except for the API server and the clock.
#pragma once

#include "agent/node_agent.h"
#include "base/random.h"
#include "device/sim_gpus.h"
#include "gpu/catalogue.h"
#include "kube/transport.h"
#include "sim/world/events/faults.h"
#include "sim/world/events/log.h"
#include "sim/world/events/queue.h"
#include "sim/world/events/violations.h"
#include "sim/world/events/world_clock.h"
#include "sim/world/node/virtual_node.h"

namespace nos::sim {

struct Environment {
  const gpu::Catalogue& catalogue;
  kube::Transport& api;  // without injected faults
  WorldClock& clock;
  EventQueue& queue;
  EventLog& log;
  Faults& faults;          // of controllers
  Faults& kubelet_faults;  // the same without crashes: the kubelet is part of the node
  Random& random;
  Violations& violations;
};

}  // namespace nos::sim
