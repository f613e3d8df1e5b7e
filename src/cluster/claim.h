// Which MIG instances of a node its pods hold. Internal to this room.
#pragma once

#include "cluster/resources.h"
#include "cluster/snapshot.h"

namespace nos::cluster {

enum class Prefer {
  kUsed,  // the pod was there already: the status may count its instances as used
  kFree,  // the pod is new
};

// Marks as used, by this pod, an instance for each that it requests (see snapshot.h).
void ClaimInstances(const Pod& pod, const ResourceVector& requests, Prefer prefer, NodeInfo& info);

}  // namespace nos::cluster
