#pragma once

#include <string_view>

namespace nos {

// True if the text is well-formed UTF-8 (RFC 3629), which JSON requires.
bool IsUtf8(std::string_view text);

}  // namespace nos
