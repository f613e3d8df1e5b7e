// Regular expressions: RE2's, which are Go's.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace re2 {
class RE2;
}

namespace nos::cel {

class Regex {
 public:
  // Null if the pattern is none.
  static std::unique_ptr<const Regex> Compile(std::string_view pattern);
  ~Regex();

  bool Matches(std::string_view text) const;
  // The first match, or an empty text.
  std::string_view Find(std::string_view text) const;
  // At most `limit` matches that do not overlap; all if it is negative.
  std::vector<std::string_view> FindAll(std::string_view text, int64_t limit) const;

 private:
  explicit Regex(std::unique_ptr<const re2::RE2> pattern);
  std::unique_ptr<const re2::RE2> pattern_;
};

}  // namespace nos::cel
