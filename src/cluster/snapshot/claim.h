// Which MIG instances of a node its pods hold. Internal to this room.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cluster/annotations.h"
#include "cluster/resources.h"
#include "cluster/snapshot.h"

namespace nos::cluster {

enum class Prefer {
  kUsed,  // the pod was there already: the status may count its instances as used
  kFree,  // the pod is new
};

// What the node's spec wants, read when first needed: it serves all pods of the node.
using WantedLayouts = std::optional<std::vector<TargetLayout>>;

// Forgets the holders that the status tells which are none of these pods, or do not ask for as
// many.
void ForgetStrangers(const std::vector<std::shared_ptr<const Pod>>& pods, NodeGpus& gpus);

// Marks as used, by this pod, an instance for each that it requests (see snapshot.h), beyond
// those that it holds already.
void ClaimInstances(const Pod& pod, const ResourceVector& requests, Prefer prefer,
                    WantedLayouts& wanted, NodeInfo& info);

}  // namespace nos::cluster
