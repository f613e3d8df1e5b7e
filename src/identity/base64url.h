// Base64url as used in tokens and keys: an alphabet without characters that need escapes in URLs,
// no padding. Source: RFC 7515, section 2.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos::identity {

std::string EncodeBase64Url(std::string_view bytes);
// Error: kInvalid, also for white space and padding.
Result<std::string> DecodeBase64Url(std::string_view text);

}  // namespace nos::identity
