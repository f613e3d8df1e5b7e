// The `pattern` rules of a schema, in the syntax of Go's regexp, which is RE2's. Matching takes
// time linear in the text, whatever the pattern; what a pattern may take of memory is bounded.
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

// Of one schema so many are applied.
inline constexpr size_t kMaxPatterns = 500;

class Patterns {
 public:
  // All that are in the schema and can be applied (FaultOf).
  explicit Patterns(const Json& schema);
  ~Patterns();
  Patterns(const Patterns&) = delete;
  Patterns& operator=(const Patterns&) = delete;

  // Whether some part of the text matches. True for a pattern that cannot be applied.
  bool Matches(std::string_view pattern, std::string_view text) const;

 private:
  std::map<std::string, std::unique_ptr<const re2::RE2>, std::less<>> compiled_;
};

struct PatternFault {
  bool malformed = false;  // else it is right, but too large to be applied
  std::string why;         // empty: it can be applied
};
PatternFault FaultOf(std::string_view pattern);

}  // namespace nos::sim
