// What a pod refers to and a dump leaves out: nothing can be said of it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/surroundings.h"

namespace nos::cmd {

// Kinds of objects that the pod refers to and of which there is none: "PersistentVolumeClaim".
std::vector<std::string> MissingKinds(const cluster::Pod& pod, const cluster::Surroundings& around);

// Whether those of them are missing that say how many pods of its group are placed together.
bool MissesGroups(const cluster::Pod& pod, const cluster::Surroundings& around);

// Says on stderr what is missing. Returns the pod without its volumes when they cannot be told.
std::shared_ptr<const cluster::Pod> LeaveOutMissing(
    const std::shared_ptr<const cluster::Pod>& pod,
    const std::optional<cluster::Surroundings>& around);

}  // namespace nos::cmd
