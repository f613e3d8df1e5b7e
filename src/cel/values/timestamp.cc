#include "cel/values/timestamp.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cel/values/zone_file.h"

namespace nos::cel {
namespace {

constexpr int64_t kDay = 86400;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Days since 1970 of a date in the Gregorian calendar (H. Hinnant, "chrono-Compatible Low-Level
// Date Algorithms").
int64_t DaysFromCivil(int64_t year, int month, int day) {
  year -= month <= 2 ? 1 : 0;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  const int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
  return era * 146097 + day_of_era - 719468;
}

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int DaysIn(int month, int64_t year) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeap(year) ? 29 : kDays[month - 1];
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Reads fields of a fixed form from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  // `width` digits; with `or_less`, one digit is enough.
  int Number(size_t width, bool or_less = false) {
    size_t end = 0;
    int value = 0;
    while (end < width && end < rest_.size() && IsDigit(rest_[end])) {
      value = value * 10 + (rest_[end++] - '0');
    }
    if (end == 0 || (end < width && !or_less)) ok_ = false;
    rest_.remove_prefix(end);
    return value;
  }
  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void Expect(char c) { ok_ = Take(c) && ok_; }
  // Nanoseconds behind "." or ","; further digits are cut.
  int32_t Fraction() {
    if (rest_.size() < 2 || (rest_[0] != '.' && rest_[0] != ',') || !IsDigit(rest_[1])) return 0;
    rest_.remove_prefix(1);
    int32_t value = 0;
    int32_t place = 100'000'000;
    for (; !rest_.empty() && IsDigit(rest_[0]); rest_.remove_prefix(1), place /= 10) {
      value += (rest_[0] - '0') * place;
    }
    return value;
  }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool ok_ = true;
};

struct DurationUnit {
  std::string_view text;
  uint64_t nanos;
};
constexpr DurationUnit kDurationUnits[] = {
    {"ns", 1},         {"us", 1000},         {"\u00b5s", 1000},     {"\u03bcs", 1000},
    {"ms", 1'000'000}, {"s", 1'000'000'000}, {"m", 60'000'000'000}, {"h", 3'600'000'000'000}};

constexpr uint64_t kTop = uint64_t{1} << 63;

// The digits at the front; false beyond 2^63.
bool LeadingInt(std::string_view& rest, uint64_t& value) {
  for (value = 0; !rest.empty() && IsDigit(rest[0]); rest.remove_prefix(1)) {
    if (value > kTop / 10) return false;
    value = value * 10 + static_cast<uint64_t>(rest[0] - '0');
    if (value > kTop) return false;
  }
  return true;
}

// The digits at the front as far as they fit, and the power of ten that divides them.
uint64_t LeadingFraction(std::string_view& rest, double& scale) {
  uint64_t value = 0;
  scale = 1;
  bool full = false;
  for (; !rest.empty() && IsDigit(rest[0]); rest.remove_prefix(1)) {
    if (full) continue;
    if (value > (kTop - 1) / 10) {
      full = true;
      continue;
    }
    const uint64_t next = value * 10 + static_cast<uint64_t>(rest[0] - '0');
    if (next > kTop) {
      full = true;
      continue;
    }
    value = next;
    scale *= 10;
  }
  return value;
}

std::string_view TakeUnit(std::string_view& rest) {
  size_t end = 0;
  while (end < rest.size() && rest[end] != '.' && !IsDigit(rest[end])) ++end;
  const std::string_view unit = rest.substr(0, end);
  rest.remove_prefix(end);
  return unit;
}

}  // namespace

int Timestamp::Compare(const Timestamp& other) const {
  if (seconds != other.seconds) return seconds < other.seconds ? -1 : 1;
  return nanos < other.nanos ? -1 : nanos > other.nanos ? 1 : 0;
}

std::optional<Timestamp> Timestamp::Parse(std::string_view text) {
  Reader reader(text);
  const int year = reader.Number(4);
  reader.Expect('-');
  const int month = reader.Number(2);
  reader.Expect('-');
  const int day = reader.Number(2);
  reader.Expect('T');
  const int hour = reader.Number(2, /*or_less=*/true);
  reader.Expect(':');
  const int minute = reader.Number(2);
  reader.Expect(':');
  const int second = reader.Number(2);
  Timestamp time;
  time.nanos = reader.Fraction();
  if (!reader.Take('Z')) {
    const bool west = reader.Take('-');
    if (!west) reader.Expect('+');
    const int zone_hour = reader.Number(2);
    reader.Expect(':');
    const int zone_minute = reader.Number(2);
    if (zone_hour > 24 || zone_minute > 60) return std::nullopt;
    time.offset = (zone_hour * 60 + zone_minute) * (west ? -60 : 60);
  }
  if (!reader.done() || month < 1 || month > 12 || day < 1 || day > DaysIn(month, year) ||
      hour > 23 || minute > 59 || second > 59) {
    return std::nullopt;
  }
  time.seconds = DaysFromCivil(year, month, day) * kDay + int64_t{hour} * 3600 +
                 int64_t{minute} * 60 + second - time.offset;
  return time;
}

std::string Timestamp::ToString() const {
  const CivilTime civil = CivilTime::Of(seconds + offset);
  std::string text = fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}", civil.year, civil.month,
                                 civil.day, civil.hour, civil.minute, civil.second);
  if (nanos != 0) {
    std::string fraction = fmt::format(".{:09}", nanos);
    fraction.resize(fraction.find_last_not_of('0') + 1);
    text += fraction;
  }
  if (offset == 0) return text + "Z";
  const int minutes = std::abs(offset) / 60;
  return text + fmt::format("{}{:02}:{:02}", offset < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

CivilTime CivilTime::Of(int64_t seconds) {
  const int64_t days = FloorDiv(seconds, kDay);
  const int64_t second_of_day = seconds - days * kDay;
  const int64_t shifted = days + 719468;
  const int64_t era = FloorDiv(shifted, 146097);
  const int64_t day_of_era = shifted - era * 146097;
  const int64_t year_of_era =
      (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year =
      day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
  const int64_t month = (5 * day_of_year + 2) / 153;
  CivilTime civil;
  civil.day = static_cast<int>(day_of_year - (153 * month + 2) / 5 + 1);
  civil.month = static_cast<int>(month < 10 ? month + 3 : month - 9);
  civil.year = year_of_era + era * 400 + (civil.month <= 2 ? 1 : 0);
  civil.day_of_year = static_cast<int>(days - DaysFromCivil(civil.year, 1, 1));
  civil.weekday = static_cast<int>(((days % 7) + 11) % 7);  // 1970 began on a Thursday
  civil.hour = static_cast<int>(second_of_day / 3600);
  civil.minute = static_cast<int>(second_of_day / 60 % 60);
  civil.second = static_cast<int>(second_of_day % 60);
  return civil;
}

std::optional<int64_t> ZoneOffset(std::string_view zone, int64_t seconds) {
  const size_t colon = zone.find(':');
  if (colon == std::string_view::npos) {
    if (zone.empty() || zone == "UTC") return 0;
    return ZoneFileOffset(zone, seconds);
  }
  const auto number = [](std::string_view text) -> std::optional<int64_t> {
    const bool plus = text.starts_with('+');
    if (plus) text.remove_prefix(1);
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size() ||
        (plus && text.starts_with('-'))) {
      return std::nullopt;
    }
    return value;
  };
  const auto hours = number(zone.substr(0, colon));
  const auto minutes = number(zone.substr(colon + 1));
  if (!hours || !minutes) return std::nullopt;
  constexpr int64_t kMax = int64_t{1} << 40;
  if (std::abs(*hours) > kMax || std::abs(*minutes) > kMax) return std::nullopt;
  return (*hours * 60 + (zone[0] == '-' ? -*minutes : *minutes)) * 60;
}

std::optional<int64_t> ParseDuration(std::string_view text) {
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  if (rest == "0") return 0;
  if (rest.empty()) return std::nullopt;
  uint64_t total = 0;
  while (!rest.empty()) {
    const size_t before = rest.size();
    uint64_t value = 0;
    if (!LeadingInt(rest, value)) return std::nullopt;
    bool digits = rest.size() != before;
    uint64_t fraction = 0;
    double scale = 1;
    if (!rest.empty() && rest[0] == '.') {
      rest.remove_prefix(1);
      const size_t start = rest.size();
      fraction = LeadingFraction(rest, scale);
      digits = digits || rest.size() != start;
    }
    if (!digits) return std::nullopt;
    const std::string_view name = TakeUnit(rest);
    const auto* const unit = std::find_if(std::begin(kDurationUnits), std::end(kDurationUnits),
                                          [&](const DurationUnit& u) { return u.text == name; });
    if (unit == std::end(kDurationUnits) || value > kTop / unit->nanos) return std::nullopt;
    value *= unit->nanos;
    if (fraction > 0) {
      value += static_cast<uint64_t>(static_cast<double>(fraction) *
                                     (static_cast<double>(unit->nanos) / scale));
      if (value > kTop) return std::nullopt;
    }
    total += value;
    if (total > kTop) return std::nullopt;
  }
  if (negative) return static_cast<int64_t>(0 - total);
  if (total == kTop) return std::nullopt;
  return static_cast<int64_t>(total);
}

}  // namespace nos::cel
