// gzip (RFC 1952), whole texts at once.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

std::string Gzip(std::string_view text);

// One or more members, nothing after them. Errors: kInvalid (no gzip, cut short, damaged),
// kExhausted (it would be longer than `most` bytes; no more than that is ever held).
Result<std::string> Gunzip(std::string_view compressed, size_t most);

}  // namespace nos
