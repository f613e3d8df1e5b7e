// Writing a node's annotations.
#pragma once

#include <string_view>

#include "cluster/annotations.h"
#include "kube/client.h"

namespace nos::controllers {

// A merge patch of these annotations alone; with a `resource_version`, only if the node still has
// it (kConflict otherwise). Returns the node as it is then.
Result<Json> PatchNodeAnnotations(kube::Client& client, std::string_view node,
                                  const cluster::AnnotationPatch& patch,
                                  std::string_view resource_version = "");

}  // namespace nos::controllers
