// Discovery endpoints: versions, groups, resources, OpenAPI.
#pragma once

#include <optional>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// The answer to a GET of a path that is not a resource: /version, /healthz, /api, /apis,
// /apis/<group>[/<version>], /openapi/v2 (the bytes as a string), /openapi/v3[/...]. nullopt if the
// path is unknown.
std::optional<Json> Discover(const TypeRegistry& types, std::string_view path);

}  // namespace nos::sim
