// Base64 (RFC 4648, standard alphabet), as in kubeconfig files and Secrets.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

// White space is skipped; padding may be missing. Error: kInvalid.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace nos
