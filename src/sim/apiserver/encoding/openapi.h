// The part of OpenAPI that stock kubectl needs before it writes: which kinds accept the
// fieldValidation and dryRun parameters. Version 3 also has the schemas for `kubectl explain`.
// Version 2 has none, because clients before 1.27 would validate and merge by them; without schemas
// they leave both to the server.
#pragma once

#include <optional>

#include "sim/apiserver/schemas/types.h"

namespace nos::sim {

// /openapi/v3: {paths: {"apis/apps/v1": {serverRelativeURL}}}.
Json OpenApiIndex(const TypeRegistry& types);
// /openapi/v3/<key>; nullopt for a group version that is not served.
std::optional<Json> OpenApiOf(const TypeRegistry& types, std::string_view key);
// /openapi/v2 in protobuf (openapi.v2.Document of gnostic), the only encoding that kubectl reads.
std::string OpenApiV2(const TypeRegistry& types);

}  // namespace nos::sim
