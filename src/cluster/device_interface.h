// By which of the kubelet's interfaces a node gives its GPUs to pods.
#pragma once

#include <string_view>

#include "cluster/objects.h"

namespace nos::cluster {

// "dra": nos's own driver gives the node's GPUs to ResourceClaims, and nothing else does.
// Otherwise: a device plugin does.
inline constexpr std::string_view kInterfaceLabel = "nos.nebuly.com/device-interface";

// True if the owner of the node wants claims. Then SharingModeOf (cluster/annotations.h) is kNone,
// because claims decide about instances.
bool ServesClaims(const Node& node);

}  // namespace nos::cluster
