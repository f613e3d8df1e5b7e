// Node pools for tests in a few words.
#pragma once

#include <string>

#include "planning/growth.h"

namespace nos::planning::testing {

// Nodes with so many GPUs of the model ("" for none), divided by MIG unless told otherwise, cpu and
// room for 110 pods; known by the label pool=<name>. `price`: "1.5".
cluster::NodePool PoolOf(const std::string& name, const std::string& model, int gpus, int cpu,
                         int max, const std::string& price);
PoolNow Now(cluster::NodePool pool, int nodes = 0, int coming = 0, std::string closed = "");

}  // namespace nos::planning::testing
