// URLs as Go parses them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/values/arena.h"

namespace nos::cel {

// Views into an arena.
struct Url {
  std::string_view scheme;
  std::string_view host;  // with the port
  std::string_view escaped_path;
  std::string_view query;
  std::string_view text;  // the canonical form; two URLs with the same text are equal

  std::string_view Hostname() const;
  std::string_view Port() const;
  // Keys and values in the order of the query, decoded. Broken pairs are left out.
  std::vector<std::pair<std::string, std::string>> Query() const;

  // An absolute URI or an absolute path, as a request has it.
  static bool IsRequestUri(std::string_view text);
  // Null if the text is no such URI.
  static const Url* Parse(Arena& arena, std::string_view text);
};

}  // namespace nos::cel
