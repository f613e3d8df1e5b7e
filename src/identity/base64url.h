// Base64 as tokens and keys have it: the alphabet that needs no escapes in URLs, without padding.
// Source: RFC 7515, section 2.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos::identity {

std::string EncodeBase64Url(std::string_view bytes);
// Error: kInvalid, for white space and padding too.
Result<std::string> DecodeBase64Url(std::string_view text);

}  // namespace nos::identity
