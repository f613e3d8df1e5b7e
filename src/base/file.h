// Reads files.
#pragma once

#include <limits>
#include <string>

#include "base/status.h"

namespace nos {

// Reads the whole file. Error, with path and cause: kNotFound (missing or not allowed), kInvalid (a
// directory, or larger than `most` bytes).
Result<std::string> ReadFile(const std::string& path,
                             size_t most = std::numeric_limits<size_t>::max());

}  // namespace nos
