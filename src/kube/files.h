// Internal to this room.
#pragma once

#include <string>

#include "base/status.h"

namespace nos::kube {

// "" when it is not set.
std::string FromEnvironment(const char* name);
// Error: kNotFound naming the file. At most 16 MiB are read.
Result<std::string> ReadWholeFile(const std::string& path);

}  // namespace nos::kube
