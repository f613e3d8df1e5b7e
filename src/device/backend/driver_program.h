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
          "NVIDIA's container runtime puts it into the agent's container: set "
          "gpuPartitioner.migAgent.runtimeClassName=nvidia, or make that runtime the node's "
          "default"};
}

}  // namespace nos::device
