// Identifies pods that plugins cannot distinguish.
#pragma once

#include <string>

#include "cluster/objects.h"

namespace nos::scheduling {

// Serializes every field of the pod that a plugin reads. Pods with equal text get the same verdicts
// and scores from every node. Priority is excluded because it only determines the order of pods.
// Claims of devices count by their template or name; see AppendClaims.
std::string KindOf(const cluster::Pod& pod);
// The same without claims of devices.
std::string KindBesideClaims(const cluster::Pod& pod);

}  // namespace nos::scheduling
