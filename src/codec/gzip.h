// gzip (RFC 1952), within limits: request bodies and journals.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

// `level`: 1, fast, to 9, small.
std::string Gzip(std::string_view text, int level = 6);
// Errors: kInvalid (not gzip, cut short, followed by something else), kExhausted (more than `most`
// bytes of text; no more than that is ever held).
Result<std::string> Gunzip(std::string_view bytes, size_t most);

}  // namespace nos
