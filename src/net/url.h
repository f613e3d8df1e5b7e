// The target of a request taken apart.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace nos::net {

struct Target {
  std::string path;                                        // percent-decoded
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in the order sent
};

// "%2B" becomes "+". With `plus_is_space` also '+' becomes ' ', as in query strings. Error:
// kInvalid for a '%' without two hex digits after it.
Result<std::string> PercentDecode(std::string_view text, bool plus_is_space = false);
// Everything but letters, digits and -._~ becomes %XX.
std::string PercentEncode(std::string_view text);

// "/a/b%20c?x=1&y" in origin form ("http://host/..." is refused). Error: kInvalid for bad escapes,
// an encoded slash, control characters, or "." and ".." as segments: nothing behind this has to
// wonder which path is meant.
Result<Target> ParseTarget(std::string_view target);

}  // namespace nos::net
