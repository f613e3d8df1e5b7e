// Asks the node's container runtime how it is configured.
//
//   const Result<std::string> config = ReadRuntimeConfig("/run/containerd/containerd.sock");
#pragma once

#include <string>

#include "base/status.h"

namespace nos::kubelet {

// containerd's configuration of CRI as JSON; "": the runtime does not give one. Errors: those of
// UnaryCall; kUnimplemented: it serves no CRI. Blocks for 5 s at most.
Result<std::string> ReadRuntimeConfig(const std::string& socket);

}  // namespace nos::kubelet
