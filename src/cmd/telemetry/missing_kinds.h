// Objects that a pod refers to and a dump does not contain.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/context.h"

namespace nos::cmd {

// Kinds that the pod refers to and of which the dump has no object: "PersistentVolumeClaim".
std::vector<std::string> MissingKinds(const cluster::Pod& pod,
                                      const cluster::ClusterContext& context);

// True if the objects are missing that define how many pods of the gang are placed together.
bool MissesGroups(const cluster::Pod& pod, const cluster::ClusterContext& context);

// Reports missing kinds on stderr. Returns the pod without its volumes if they are missing.
std::shared_ptr<const cluster::Pod> LeaveOutMissing(
    const std::shared_ptr<const cluster::Pod>& pod,
    const std::optional<cluster::ClusterContext>& context);

}  // namespace nos::cmd
