#include "codec/millionths.h"

#include <fmt/format.h>

#include "base/text.h"

namespace nos {
namespace {

constexpr int64_t kMillion = 1'000'000;

}  // namespace

std::optional<int64_t> ParseMillionths(std::string_view text) {
  constexpr size_t kDigits = 6;
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  std::string digits(point == std::string_view::npos ? "" : text.substr(point + 1));
  const bool only_digits = !whole.starts_with('-') && !digits.starts_with('-');
  const bool empty = point != std::string_view::npos && digits.empty();
  if (!only_digits || empty || digits.size() > kDigits) return std::nullopt;
  digits.resize(kDigits, '0');
  const auto units = ParseInt(whole), millionths = ParseInt(digits);
  int64_t value = 0;
  const bool fits = units && millionths && !__builtin_mul_overflow(*units, kMillion, &value) &&
                    !__builtin_add_overflow(value, *millionths, &value);
  return fits ? std::optional(value) : std::nullopt;
}

std::string MillionthsText(int64_t millionths) {
  // Not -millionths: the lowest number has no counterpart.
  const uint64_t size =
      millionths < 0 ? ~static_cast<uint64_t>(millionths) + 1 : static_cast<uint64_t>(millionths);
  constexpr auto kUnit = static_cast<uint64_t>(kMillion);
  std::string text =
      fmt::format("{}{}.{:06}", millionths < 0 ? "-" : "", size / kUnit, size % kUnit);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace nos
