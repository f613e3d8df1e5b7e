// Paths of the Kubernetes API.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nos::sim {

// The parts of a path such as "/apis/apps/v1/namespaces/a/deployments/b/status"; missing parts are
// empty.
struct ApiPath {
  std::string group, version, ns, plural, name, subresource;
};

// nullopt if the path is not that of a resource (a group, /version, garbage).
std::optional<ApiPath> ParseApiPath(std::string_view path);

}  // namespace nos::sim
