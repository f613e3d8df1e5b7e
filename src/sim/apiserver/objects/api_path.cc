#include "sim/apiserver/objects/api_path.h"

#include <vector>

#include "base/text.h"

namespace nos::sim {

std::optional<ApiPath> ParseApiPath(std::string_view path) {
  if (!path.starts_with('/')) return std::nullopt;
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  std::vector<std::string_view> parts = Split(path.substr(1), '/');
  ApiPath result;
  size_t at = 1;
  if (parts[0] == "apis" && parts.size() > 1) {
    result.group = parts[at++];
  } else if (parts[0] != "api") {
    return std::nullopt;
  }
  if (parts.size() < at + 2) return std::nullopt;
  result.version = parts[at++];
  // "namespaces/a/pods" is the pods in a; "namespaces/a" and "namespaces/a/status" are the
  // namespace.
  const size_t left = parts.size() - at;
  if (parts[at] == "namespaces" && left >= 3 && parts[at + 2] != "status" &&
      parts[at + 2] != "finalize") {
    result.ns = parts[at + 1];
    if (result.ns.empty()) return std::nullopt;
    at += 2;
  }
  if (parts.size() - at > 3) return std::nullopt;
  result.plural = parts[at++];
  if (at < parts.size()) result.name = parts[at++];
  if (at < parts.size()) result.subresource = parts[at++];
  for (const std::string_view part : parts) {
    if (part.empty()) return std::nullopt;
  }
  return result;
}

}  // namespace nos::sim
