#include "codec/api_request.h"

#include <fmt/core.h>

namespace nos::codec {

std::string ApiRequest::Query(std::string_view key) const {
  for (const auto& [name, value] : query) {
    if (name == key) return value;
  }
  return {};
}

std::string PathOf(const Resource& resource, std::string_view ns, std::string_view name,
                   std::string_view subresource) {
  std::string path = resource.group.empty()
                         ? fmt::format("/api/{}", resource.version)
                         : fmt::format("/apis/{}/{}", resource.group, resource.version);
  if (resource.namespaced && !ns.empty()) path += fmt::format("/namespaces/{}", ns);
  path += "/" + resource.plural;
  if (!name.empty()) path += fmt::format("/{}", name);
  if (!subresource.empty()) path += fmt::format("/{}", subresource);
  return path;
}

}  // namespace nos::codec
