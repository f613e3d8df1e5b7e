// The `pattern` rules of a schema, in the syntax of Go's regexp, which is that of RE2. Matching
// takes time linear in the text for any pattern; the memory of a pattern is bounded.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "codec/json.h"

namespace re2 {
class RE2;
}

namespace nos::sim {

// At most this many patterns of a schema are applied.
inline constexpr size_t kMaxPatterns = 500;

class Patterns {
 public:
  // Compiles all patterns of the schema that can be applied (FaultOf).
  explicit Patterns(const Json& schema);
  ~Patterns();
  Patterns(const Patterns&) = delete;
  Patterns& operator=(const Patterns&) = delete;

  // True if some part of the text matches. Always true for a pattern that cannot be applied.
  bool Matches(std::string_view pattern, std::string_view text) const;

 private:
  std::map<std::string, std::unique_ptr<const re2::RE2>, std::less<>> compiled_;
};

struct PatternFault {
  bool malformed = false;  // false: well-formed, but too large to be applied
  std::string why;         // empty: it can be applied
};
PatternFault FaultOf(std::string_view pattern);

}  // namespace nos::sim
