// Writes annotations and device counts of nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "kube/client.h"

namespace nos::reconcile {

// A merge patch that changes only these annotations. With `resource_version` it fails with
// kConflict if the node has changed since.
Json AnnotationsOf(const cluster::AnnotationPatch& patch, std::string_view resource_version = "");
// Sends the patch. Returns the patched node.
Result<Json> PatchNodeAnnotations(kube::Client& client, std::string_view node,
                                  const cluster::AnnotationPatch& patch,
                                  std::string_view resource_version = "");

// A plan id greater than any id in the node's annotations, so that ids are unique per node without
// a clock, whichever controller writes them. After the largest possible id (written by hand) it
// starts again at 1 and skips the ids in use.
std::string NextPlanId(const cluster::Node& node);

// Sets the number of devices of each resource that schedulers may count on: status.allocatable, and
// status.capacity where it would be less. Error: kConflict if the node has been replaced by another
// one of the same name.
Result<cluster::Node> PatchNodeDevices(kube::Client& client, const cluster::Node& node,
                                       const std::map<std::string, int64_t>& counts);

// The value in the node's status.allocatable; 0 if the resource is absent.
int64_t AllocatableOf(const cluster::Node& node, const std::string& resource);

}  // namespace nos::reconcile
