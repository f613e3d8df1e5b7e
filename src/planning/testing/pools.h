// Builds NodePools for tests from short descriptions.
#pragma once

#include <string>

#include "planning/growth.h"

namespace nos::planning::testing {

// A NodePool whose nodes have `gpus` GPUs of the model ("" for none) in MIG mode by default, `cpu`
// cores and capacity for 110 pods. The label pool=<name> selects its nodes. `price`: "1.5".
cluster::NodePool PoolOf(const std::string& name, const std::string& model, int gpus, int cpu,
                         int max, const std::string& price);
NodePoolState Now(cluster::NodePool pool, int nodes = 0, int coming = 0, std::string closed = "");

}  // namespace nos::planning::testing
