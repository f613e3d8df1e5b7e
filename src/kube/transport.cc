#include "kube/transport.h"

namespace nos::kube {

std::string ApiRequest::Query(std::string_view key) const {
  for (const auto& [name, value] : query) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace nos::kube
