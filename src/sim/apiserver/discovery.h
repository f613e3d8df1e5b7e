// What the server tells about itself: versions, groups, resources, and as much OpenAPI as stock
// kubectl needs before it applies something.
#pragma once

#include <optional>

#include "sim/apiserver/types.h"

namespace nos::sim {

// The answer to a GET of a path outside the resources: /version, /healthz, /api, /apis,
// /apis/<group>[/<version>], /openapi/v3[/...]. Nothing when there is no such path.
std::optional<Json> Discover(const TypeRegistry& types, std::string_view path);

// /openapi/v2 in protobuf, the only form that kubectl reads: a valid document without definitions,
// which makes clients skip validation on their side.
std::string OpenApiV2();

}  // namespace nos::sim
