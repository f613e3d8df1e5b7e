#include "sim/apiserver/schemas/patterns.h"

#include <re2/re2.h>

#include "sim/apiserver/schemas/custom_rules.h"

namespace nos::sim {
namespace {

constexpr int64_t kMaxMemory = 256 << 10;

std::unique_ptr<const re2::RE2> Compile(std::string_view pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kMaxMemory);
  return std::make_unique<const re2::RE2>(re2::StringPiece(pattern.data(), pattern.size()),
                                          options);
}

}  // namespace

Patterns::Patterns(const Json& schema) {
  size_t count = 0;
  VisitSchemas(schema, "", [&](const Json& part, const std::string&) {
    const std::string pattern(FindString(part, "pattern"));
    if (pattern.empty() || ++count > kMaxPatterns) return;
    auto compiled = Compile(pattern);
    if (compiled->ok()) compiled_.emplace(pattern, std::move(compiled));
  });
}

Patterns::~Patterns() = default;

bool Patterns::Matches(std::string_view pattern, std::string_view text) const {
  const auto found = compiled_.find(pattern);
  return found == compiled_.end() ||
         re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *found->second);
}

PatternFault FaultOf(std::string_view pattern) {
  const auto compiled = Compile(pattern);
  if (compiled->ok()) return {};
  return {compiled->error_code() != re2::RE2::ErrorPatternTooLarge, compiled->error()};
}

}  // namespace nos::sim
