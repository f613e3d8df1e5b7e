#include "kube/cache.h"

#include "base/text.h"

namespace nos::kube {

std::string KeyOf(std::string_view ns, std::string_view name) {
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
