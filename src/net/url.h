// Parses the target of a request.
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
// Encodes everything but letters, digits and -._~ as %XX.
std::string PercentEncode(std::string_view text);

// Parses "/a/b%20c?x=1&y" in origin form ("http://host/..." is refused). Error: kInvalid for bad
// escapes, an encoded slash, control characters, or "." and ".." as segments, so that a path has
// only one meaning behind this function.
Result<Target> ParseTarget(std::string_view target);

}  // namespace nos::net
