// What must hold in a virtual cluster after every step, whatever went wrong before. Each function
// says, in words, what does not hold.
#pragma once

#include <string>
#include <vector>

#include "cluster/objects.h"
#include "sim/world/machine.h"

namespace nos::sim {

// No two instances overlap and every GPU's layout is one the hardware can have; every device that a
// pod holds is there, is of the kind it asked for, and is held by no other pod; every pod that runs
// has all its devices. (That no used instance is destroyed is noted by the machine as it happens.)
std::vector<std::string> CheckMachine(const Machine& machine);

// What the partitioner and the agent wrote on the node can be read back.
std::vector<std::string> CheckNode(const cluster::Node& node, const gpu::Catalogue& catalogue);

}  // namespace nos::sim
