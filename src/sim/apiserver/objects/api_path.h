// Paths of the Kubernetes API.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nos::sim {

// "/apis/apps/v1/namespaces/a/deployments/b/status" taken apart; what is not there is empty.
struct ApiPath {
  std::string group, version, ns, plural, name, subresource;
};

// Nothing when it is not the path of a resource (a group, /version, rubbish).
std::optional<ApiPath> ParseApiPath(std::string_view path);

}  // namespace nos::sim
