// The vocabulary of reasons for missing slices: what keeps them from the GPUs of a node, where
// filters only say that they are insufficient.
//
//   if (!node.gpus.managed) return NotPartitioned(*node.node);
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "cluster/annotations.h"
#include "scheduling/reasons.h"

namespace nos::scheduling {

// "mps" or "hybrid" if the node's label requests that mode but no agent has reported such GPUs;
// else "".
std::string_view UnreportedSharingMode(const cluster::Node& node);

// The node's owner has not opted it in to partitioning, or no agent serves its label.
Reason NotPartitioned(const cluster::Node& node);
// The node has no usable GPU.
Reason GpuProblem(const std::string& problem);
// The node has no GPU with the profile.
Reason NoGpuForProfile(const cluster::NodeGpus& gpus, const std::string& resource);
// `slices`: "2 x 1g.5gb and 3g.20gb". `beside_used`: an instance of the node is in use.
Reason NoRoomForSlices(const std::string& slices, bool beside_used);

}  // namespace nos::scheduling
