// What the server tells about itself: versions, groups, resources, OpenAPI.
#pragma once

#include <optional>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// The answer to a GET of a path outside the resources: /version, /healthz, /api, /apis,
// /apis/<group>[/<version>], /openapi/v2 (the bytes as a string), /openapi/v3[/...]. Nothing when
// there is no such path.
std::optional<Json> Discover(const TypeRegistry& types, std::string_view path);

}  // namespace nos::sim
