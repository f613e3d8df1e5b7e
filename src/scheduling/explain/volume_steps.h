// The part of steps.h that is about volumes. Internal to it.
#pragma once

#include <string>

#include "scheduling/plugin.h"

namespace nos::scheduling {

// "": the reason is not about volumes.
std::string VolumeStep(const Reason& reason, const cluster::Pod& pod, const cluster::NodeInfo& node,
                       const cluster::ClusterSnapshot& snapshot);
// "": all claims of the pod are bound.
std::string UnboundStep(const cluster::Pod& pod, const cluster::ClusterContext& context);

}  // namespace nos::scheduling
