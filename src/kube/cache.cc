#include "kube/cache.h"

#include "base/text.h"

namespace nos::kube {

std::string KeyOf(const Json& object) {
  const std::string_view ns = FindString(object, "metadata", "namespace");
  const std::string_view name = FindString(object, "metadata", "name");
  std::string key(ns);
  if (!ns.empty()) key += '/';
  return key.append(name);
}

bool NotNewer(std::string_view a, std::string_view b) {
  const std::optional<int64_t> left = ParseInt(a);
  const std::optional<int64_t> right = ParseInt(b);
  return left && right && *left <= *right;
}

}  // namespace nos::kube
