// Base64 (RFC 4648, standard alphabet): Secrets, kubeconfig files, tokens.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

// With padding, on one line.
std::string EncodeBase64(std::string_view bytes);

// White space between characters is skipped, because files wrap long lines. Error: kInvalid for
// other characters and for missing or wrong padding.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace nos
