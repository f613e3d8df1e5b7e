#pragma once

#include <string_view>

namespace nos {

// Whether the text is well-formed UTF-8 (RFC 3629), as JSON must be.
bool IsUtf8(std::string_view text);

}  // namespace nos
