// gzip (RFC 1952) with size limits, for request bodies and journals.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

// `level`: 1, fast, to 9, small.
std::string Gzip(std::string_view text, int level = 6);
// Errors: kInvalid (not gzip, truncated, trailing bytes), kExhausted (more than `most` bytes of
// text; never holds more than that).
Result<std::string> Gunzip(std::string_view bytes, size_t most);

}  // namespace nos
