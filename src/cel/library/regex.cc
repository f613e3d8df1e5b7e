#include "cel/library/regex.h"

#include <re2/re2.h>

#include <string>

#include "cel/values/equality.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

// A pattern as RE2 2022 reads it: Go also takes (?<name>...), and refuses \C.
std::optional<std::string> Translate(std::string_view pattern) {
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      if (pattern[i + 1] == 'C') return std::nullopt;
      out += pattern.substr(i, 2);
      ++i;
    } else if (pattern.substr(i).starts_with("(?<")) {
      out += "(?P<";
      i += 2;
    } else {
      out += pattern[i];
    }
  }
  return out;
}

}  // namespace

Regex::Regex(std::unique_ptr<const re2::RE2> pattern) : pattern_(std::move(pattern)) {}
Regex::~Regex() = default;

std::unique_ptr<const Regex> Regex::Compile(std::string_view pattern) {
  const auto translated = Translate(pattern);
  if (!translated) return nullptr;
  re2::RE2::Options options;
  options.set_log_errors(false);
  auto compiled = std::make_unique<const re2::RE2>(*translated, options);
  if (!compiled->ok()) return nullptr;
  return std::unique_ptr<const Regex>(new Regex(std::move(compiled)));
}

bool Regex::Matches(std::string_view text) const {
  return re2::RE2::PartialMatch({text.data(), text.size()}, *pattern_);
}

std::string_view Regex::Find(std::string_view text) const {
  re2::StringPiece match;
  const re2::StringPiece input(text.data(), text.size());
  if (!pattern_->Match(input, 0, text.size(), re2::RE2::UNANCHORED, &match, 1)) return {};
  return {match.data(), match.size()};
}

std::vector<std::string_view> Regex::FindAll(std::string_view text, int64_t limit) const {
  std::vector<std::string_view> found;
  const re2::StringPiece input(text.data(), text.size());
  size_t at = 0;
  size_t last_end = ~size_t{0};
  while (at <= text.size() && (limit < 0 || found.size() < static_cast<size_t>(limit))) {
    StepLimit::Spend(1);
    re2::StringPiece match;
    if (!pattern_->Match(input, at, text.size(), re2::RE2::UNANCHORED, &match, 1)) break;
    const auto start = static_cast<size_t>(match.data() - text.data());
    const size_t end = start + match.size();
    // An empty match directly behind another match does not count.
    if (match.size() > 0 || start != last_end) found.emplace_back(match.data(), match.size());
    last_end = end;
    at = end;
    if (match.size() == 0) {
      ++at;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80) ++at;
    }
  }
  return found;
}

}  // namespace nos::cel
