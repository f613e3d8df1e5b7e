#include "sim/scenarios/words.h"

#include <fmt/format.h>

#include "base/table.h"
#include "base/text.h"

namespace nos::sim {

Words::Words(std::string_view line, std::string where) : where_(std::move(where)) {
  constexpr std::string_view kSpace = " \t\r";
  size_t at = line.find_first_not_of(kSpace);
  while (at != std::string_view::npos && line[at] != '#') {
    const size_t end = std::min(line.find_first_of(kSpace, at), line.size());
    words_.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(kSpace, end);
  }
}

bool Words::TakeIf(std::string_view word) {
  if (Peek() != word || empty()) return false;
  ++next_;
  return true;
}

Result<std::string> Words::Require(std::string_view what) {
  if (empty()) return Expected(what, "");
  return std::string(Take());
}

Result<int> Words::RequireInt(std::string_view what) {
  const std::string_view word = Take();
  const auto value = ParseInt(word);
  if (!value || *value < 0 || *value > 1'000'000) return Expected(what, word);
  return static_cast<int>(*value);
}

std::string Words::Rest() {
  std::string out;
  while (!empty()) {
    if (!out.empty()) out += ' ';
    out += Take();
  }
  return out;
}

Status Words::End() const {
  return empty() ? Status::Ok() : Expected("the end of the line", Peek());
}

Status Words::Expected(std::string_view what, std::string_view got) const {
  if (got.empty()) return Fail(fmt::format("expected {}, but the line ends", what));
  return Fail(fmt::format("expected {}, got '{}'", what, got));
}

Status Words::Fail(std::string_view message) const {
  return Invalid(Printable(fmt::format("{}: {}", where_, message)));
}

}  // namespace nos::sim
