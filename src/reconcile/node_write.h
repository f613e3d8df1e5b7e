// What nos writes into nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "kube/client.h"

namespace nos::reconcile {

// The merge patch that writes these annotations alone; with a `resource_version`, only if the node
// still has it (kConflict otherwise).
Json AnnotationsOf(const cluster::AnnotationPatch& patch, std::string_view resource_version = "");
// Sends it. Returns the node as it is then.
Result<Json> PatchNodeAnnotations(kube::Client& client, std::string_view node,
                                  const cluster::AnnotationPatch& patch,
                                  std::string_view resource_version = "");

// Greater than any plan id that the node has seen: unique to the node without a clock, whoever
// writes it. After the greatest of all (which somebody wrote by hand) one that is neither of the
// two.
std::string NextPlanId(const cluster::Node& node);

// How many devices of each of these resources schedulers may count on: status.allocatable, and
// status.capacity where that would be less. Only this very node takes it (kConflict otherwise).
Result<cluster::Node> PatchNodeDevices(kube::Client& client, const cluster::Node& node,
                                       const std::map<std::string, int64_t>& counts);

// What the node's status says; 0 for a resource that it does not have.
int64_t AllocatableOf(const cluster::Node& node, const std::string& resource);

}  // namespace nos::reconcile
