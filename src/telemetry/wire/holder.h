#pragma once

#include <string>

namespace nos::telemetry {

// A container that holds a GPU or a part of one.
struct Holder {
  std::string ns, pod, container;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

}  // namespace nos::telemetry
