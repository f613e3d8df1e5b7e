#include "base/quantity.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"

namespace nos {
namespace {

constexpr __int128 kLimit = __int128{std::numeric_limits<int64_t>::max()} * 1'000'000'000;

struct Suffix {
  std::string_view text;
  __int128 nano;  // billionths in one unit
};

constexpr __int128 Pow(__int128 base, int exponent) {
  __int128 value = 1;
  for (int i = 0; i < exponent; ++i) value *= base;
  return value;
}

constexpr __int128 kOne = 1'000'000'000;
constexpr std::array<Suffix, 16> kSuffixes = {{{"", kOne},
                                               {"n", 1},
                                               {"u", 1000},
                                               {"m", 1'000'000},
                                               {"k", kOne* Pow(10, 3)},
                                               {"M", kOne* Pow(10, 6)},
                                               {"G", kOne* Pow(10, 9)},
                                               {"T", kOne* Pow(10, 12)},
                                               {"P", kOne* Pow(10, 15)},
                                               {"E", kOne* Pow(10, 18)},
                                               {"Ki", kOne* Pow(2, 10)},
                                               {"Mi", kOne* Pow(2, 20)},
                                               {"Gi", kOne* Pow(2, 30)},
                                               {"Ti", kOne* Pow(2, 40)},
                                               {"Pi", kOne* Pow(2, 50)},
                                               {"Ei", kOne* Pow(2, 60)}}};

// The value of a suffix: `nano` billionths, divided by `divisor`.
struct Unit {
  __int128 nano = 0;  // 0: neither a suffix nor an exponent
  __int128 divisor = 1;
};

// Beyond these exponents every amount is capped or rounded up to a billionth anyway.
constexpr int64_t kMaxExponent = 28, kMinExponent = -37;

Unit UnitOf(std::string_view suffix) {
  for (const Suffix& known : kSuffixes) {
    if (known.text == suffix) return {known.nano};
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return {};
  std::string_view digits = suffix.substr(1);
  if (digits[0] == '+') digits.remove_prefix(1);
  const auto parsed = ParseInt(digits);
  if (!parsed) return {};
  const auto exponent = static_cast<int>(std::clamp(*parsed, kMinExponent, kMaxExponent));
  if (exponent < -9) return {1, Pow(10, -9 - exponent)};
  return {Pow(10, 9 + exponent)};
}

// Multiplies the decimal digits "123.45" by the unit, rounding up, at most kLimit; false if it is
// not a number.
bool Scale(std::string_view number, const Unit& unit, __int128& out) {
  const size_t dot = number.find('.');
  const std::string_view whole = number.substr(0, dot);
  const std::string_view fraction = dot == std::string_view::npos ? "" : number.substr(dot + 1);
  if (whole.empty() && fraction.empty()) return false;
  __int128 total = 0;
  for (char c : whole) {
    if (c < '0' || c > '9') return false;
    total = std::min(total * 10 + (c - '0'), kLimit);
  }
  const bool beyond = total > 0 && unit.nano > kLimit / total;
  total = beyond ? kLimit : total * unit.nano;
  __int128 place = unit.nano;
  bool rest = false;
  for (char c : fraction) {
    if (c < '0' || c > '9') return false;
    const __int128 digit = c - '0';
    total = std::min(total + place / 10 * digit + place % 10 * digit / 10, kLimit);
    rest = rest || (place % 10 * digit % 10) != 0;
    place /= 10;
  }
  total = std::min(total + (rest ? 1 : 0), kLimit);
  out = total / unit.divisor + (total % unit.divisor > 0 ? 1 : 0);
  return true;
}

// Sums of quantities may exceed int64_t.
int64_t Clamp(__int128 value) {
  constexpr __int128 kMax = std::numeric_limits<int64_t>::max();
  return static_cast<int64_t>(value > kMax ? kMax : value < -kMax ? -kMax : value);
}

int64_t CeilDiv(__int128 value, int64_t divisor) {
  const __int128 quotient = value / divisor;
  return Clamp(quotient + (value % divisor > 0 ? 1 : 0));
}

}  // namespace

Result<Quantity> Quantity::Parse(std::string_view text) {
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest.front() == '-';
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
  const size_t end = rest.find_first_not_of("0123456789.");
  const std::string_view number = rest.substr(0, end);
  const std::string_view suffix = end == std::string_view::npos ? "" : rest.substr(end);
  const Unit unit = UnitOf(suffix);
  __int128 nano = 0;
  if (unit.nano == 0 || !Scale(number, unit, nano)) {
    return Invalid(fmt::format("'{}' is not a quantity (examples: 500m, 2, 16Gi)", text));
  }
  return Quantity(negative ? -nano : nano);
}

int64_t Quantity::Value() const { return CeilDiv(nano_, kNano); }

int64_t Quantity::MilliValue() const { return CeilDiv(nano_, kNano / 1000); }

std::string Quantity::ToString() const {
  if (nano_ % kNano == 0) return fmt::format("{}", nano_ / kNano);
  if (nano_ % 1'000'000 == 0) return fmt::format("{}m", nano_ / 1'000'000);
  if (nano_ % 1000 == 0) return fmt::format("{}u", nano_ / 1000);
  return fmt::format("{}n", nano_);
}

std::string Quantity::ToBinaryString() const {
  if (nano_ == 0) return "0";
  for (size_t i = kSuffixes.size() - 1; i > 9; --i) {
    if (nano_ % kSuffixes[i].nano == 0) {
      return fmt::format("{}{}", nano_ / kSuffixes[i].nano, kSuffixes[i].text);
    }
  }
  return ToString();
}

}  // namespace nos
