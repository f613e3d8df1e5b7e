// Base64 (RFC 4648, standard alphabet): Secrets, kubeconfig files, tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

// With padding, on one line.
std::string EncodeBase64(std::string_view bytes);

// White space between the characters is skipped: files wrap long lines. Error: kInvalid for other
// characters, and where the padding is missing or wrong.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace nos
