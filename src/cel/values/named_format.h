// Formats of text that Kubernetes names: "dns1123Label", "uuid".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nos::cel {

struct NamedFormat {
  std::string_view name;
  // Upstream's guess of the size of a regular expression for it, for the cost.
  uint64_t regex_size = 0;
  // The reasons why a text does not have the format; empty if it does.
  std::vector<std::string> (*problems)(std::string_view text) = nullptr;
};

}  // namespace nos::cel
