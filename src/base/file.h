// Reading files.
#pragma once

#include <limits>
#include <string>

#include "base/status.h"

namespace nos {

// The whole file. Error, with the path and the cause: kNotFound (missing, not allowed), kInvalid (a
// folder, or more than `most` bytes).
Result<std::string> ReadFile(const std::string& path,
                             size_t most = std::numeric_limits<size_t>::max());

}  // namespace nos
