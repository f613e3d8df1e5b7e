// Allocation of resource ids (resources.h). Nodes, catalogues and quotas may introduce as many
// names as there are ids. Pods can request arbitrary names, so a name that only pods request gets
// an id while there are few such names; otherwise it maps to kUnknownResource, which no node
// offers, until a node offers it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/resources.h"

namespace nos::cluster {

// The id of a requested resource. kUnknownResource: no node offers it.
ResourceId InternAskedResource(std::string_view name);
// Grows when a name gets an id. Data computed from a pod that requests kUnknownResource may be
// outdated after that.
size_t CountOfResourceNames();
// The names of requested resources without an id.
std::vector<std::string> UnknownResourcesOf(const Pod& pod);

}  // namespace nos::cluster
