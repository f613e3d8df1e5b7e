// Reads and replaces files.
#pragma once

#include <limits>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

// Reads the whole file. Error, with path and cause: kNotFound (missing or not allowed), kInvalid (a
// directory, or larger than `most` bytes).
Result<std::string> ReadFile(const std::string& path,
                             size_t most = std::numeric_limits<size_t>::max());

// Replaces the file as a whole, also across a crash or a loss of power: readers find the old text
// or the new one. Its folder must exist. `mode`: permissions of a new file. Error, with path and
// cause: kUnavailable.
Status ReplaceFile(const std::string& path, std::string_view text, unsigned mode = 0600);

}  // namespace nos
