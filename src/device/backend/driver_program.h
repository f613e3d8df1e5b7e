// Programs that the NVIDIA driver brings along.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/process.h"

namespace nos::device {

inline Program DriverProgram(std::vector<std::string> arguments,
                             std::vector<std::string> environment) {
  return {std::move(arguments), std::move(environment),
          "it comes with the driver's compute utilities "
          "(NVIDIA_DRIVER_CAPABILITIES=compute,utility)"};
}

}  // namespace nos::device
