#pragma once

#include <string>
#include <vector>

#include "codec/json.h"

namespace nos::telemetry {

// A container that holds a GPU or a part of one.
struct Holder {
  std::string ns, pod, container;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};
JsonArray HoldersJson(const std::vector<Holder>& holders);

}  // namespace nos::telemetry
