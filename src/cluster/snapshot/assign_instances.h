// Assigns the instances of a node to its pods. Internal to this library.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "cluster/annotations.h"
#include "cluster/resources.h"
#include "cluster/snapshot.h"

namespace nos::cluster {

enum class Prefer {
  kUsed,  // an existing pod: the status may already count its instances as used
  kFree,  // the pod is new
};

// The layouts that the node's spec requests, read on first use and shared by all pods of the node.
using WantedLayouts = std::optional<std::vector<TargetLayout>>;

// Clears holders of the status that are none of these pods, or that request fewer instances, and
// marks their instances as left.
void MarkLeft(const std::vector<std::shared_ptr<const Pod>>& pods, NodeGpus& gpus);

// Marks an instance as used by this pod for each one that it requests (see snapshot.h), in addition
// to those that it holds already.
void AssignInstances(const Pod& pod, const ResourceVector& requests, Prefer prefer,
                     WantedLayouts& wanted, NodeInfo& info);

}  // namespace nos::cluster
