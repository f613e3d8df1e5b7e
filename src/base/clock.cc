#include "base/clock.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace nos {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Reads exactly `digits` decimal digits from the front of `text`, or nothing.
std::optional<int> TakeDigits(std::string_view& text, size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool TakeChar(std::string_view& text, std::string_view any_of) {
  if (text.empty() || any_of.find(text.front()) == std::string_view::npos) return false;
  text.remove_prefix(1);
  return true;
}

Duration TakeFraction(std::string_view& text) {
  Duration fraction{0};
  if (!TakeChar(text, ".")) return fraction;
  int64_t unit = 100'000'000;
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    fraction += Duration(unit * (text.front() - '0'));
    unit /= 10;
    text.remove_prefix(1);
  }
  return fraction;
}

std::optional<Duration> TakeOffset(std::string_view& text) {
  if (TakeChar(text, "Zz")) return Duration{0};
  const bool negative = !text.empty() && text.front() == '-';
  if (!TakeChar(text, "+-")) return std::nullopt;
  const auto h = TakeDigits(text, 2);
  if (!h || !TakeChar(text, ":")) return std::nullopt;
  const auto m = TakeDigits(text, 2);
  if (!m) return std::nullopt;
  const Duration offset = hours(*h) + minutes(*m);
  return negative ? -offset : offset;
}

struct Unit {
  std::string_view name;
  double nanoseconds;
};
constexpr std::array<Unit, 7> kUnits = {
    {{"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}}};

// The unit is the text up to the next digit, dot or end.
const Unit* TakeUnit(std::string_view& text) {
  const std::string_view name = text.substr(0, text.find_first_of("0123456789."));
  for (const Unit& unit : kUnits) {
    if (unit.name == name) {
      text.remove_prefix(name.size());
      return &unit;
    }
  }
  return nullptr;
}

}  // namespace

std::string FormatTime(Time t) {
  const auto day = floor<days>(t);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(floor<seconds>(t - day));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

Result<Time> ParseTime(std::string_view text) {
  const Status error = Invalid(fmt::format("'{}' is not an RFC 3339 time", text));
  const auto year = TakeDigits(text, 4);
  if (!year || !TakeChar(text, "-")) return error;
  const auto month = TakeDigits(text, 2);
  if (!month || !TakeChar(text, "-")) return error;
  const auto day = TakeDigits(text, 2);
  if (!day || !TakeChar(text, "Tt ")) return error;
  const auto h = TakeDigits(text, 2);
  if (!h || !TakeChar(text, ":")) return error;
  const auto m = TakeDigits(text, 2);
  if (!m || !TakeChar(text, ":")) return error;
  const auto s = TakeDigits(text, 2);
  if (!s) return error;
  const Duration fraction = TakeFraction(text);
  const auto offset = TakeOffset(text);
  const std::chrono::year_month_day date{std::chrono::year(std::clamp(*year, 1678, 2261)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!offset || !text.empty() || !date.ok() || *h > 23 || *m > 59 || *s > 60) return error;
  return Time(std::chrono::sys_days(date)) + hours(*h) + minutes(*m) + seconds(*s) + fraction -
         *offset;
}

Result<Duration> ParseDuration(std::string_view text) {
  const Status error =
      Invalid(fmt::format("'{}' is not a duration (examples: 300ms, 1.5s, 1h30m)", text));
  if (text == "0") return Duration{0};
  const bool negative = TakeChar(text, "-");
  if (text.empty()) return error;
  double total = 0;
  while (!text.empty()) {
    const size_t end = text.find_first_not_of("0123456789.");
    const auto number = ParseDouble(text.substr(0, end));
    if (!number || end == std::string_view::npos) return error;
    text.remove_prefix(end);
    const Unit* unit = TakeUnit(text);
    if (unit == nullptr) return error;
    total += *number * unit->nanoseconds;
  }
  if (total > 9.2e18) return error;
  return Duration(static_cast<int64_t>(std::llround(negative ? -total : total)));
}

std::string FormatAge(Duration d) {
  const int64_t s = std::max<int64_t>(0, floor<seconds>(d).count());
  constexpr int64_t kHour = 3600;
  if (s < 120) return fmt::format("{}s", s);
  if (s < 600)
    return s % 60 == 0 ? fmt::format("{}m", s / 60) : fmt::format("{}m{}s", s / 60, s % 60);
  if (s < 3 * kHour) return fmt::format("{}m", s / 60);
  if (s < 8 * kHour) return fmt::format("{}h{}m", s / kHour, s / 60 % 60);
  if (s < 48 * kHour) return fmt::format("{}h", s / kHour);
  return fmt::format("{}d", s / (24 * kHour));
}

}  // namespace nos
