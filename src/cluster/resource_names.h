// Which names of resources have ids (resources.h). Nodes, catalogues and quotas may name as many as
// there are ids. Pods name what their owners like: a name that only pods have gets an id as long as
// there are few such names, and stands for what nobody offers otherwise. It gets one when a node
// offers it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/resources.h"

namespace nos::cluster {

// For what a pod asks. kUnknownResource: nobody offers it.
ResourceId InternAskedResource(std::string_view name);
// Grows when a name gets an id: what was made of a pod that asks for kUnknownResource may be
// outdated then.
size_t CountOfResourceNames();
// What it asks for that has none, by name.
std::vector<std::string> UnknownResourcesOf(const Pod& pod);

}  // namespace nos::cluster
