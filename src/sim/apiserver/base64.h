// Base64 (RFC 4648, with padding): Secrets' data and the token of list pages.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nos::sim {

std::string Base64Encode(std::string_view bytes);
// Nothing when `text` is not base64.
std::optional<std::string> Base64Decode(std::string_view text);

}  // namespace nos::sim
