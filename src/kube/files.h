// Internal to this room.
#pragma once

#include <string>

#include "base/status.h"

namespace nos::kube {

// Error: kNotFound naming the file. At most 16 MiB are read.
Result<std::string> ReadWholeFile(const std::string& path);

}  // namespace nos::kube
