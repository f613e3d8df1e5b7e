#include "cel/values/amount.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace nos::cel {
namespace {

constexpr int32_t kNano = -9;
constexpr int kMaxFactors = 18;

enum class Format { kDecimal, kBinary };

struct Unit {
  Format format = Format::kDecimal;
  int32_t exponent = 0;
};

std::optional<Unit> UnitOf(std::string_view suffix) {
  constexpr std::string_view kDecimals[] = {"n", "u", "m", "", "k", "M", "G", "T", "P", "E"};
  for (size_t i = 0; i < std::size(kDecimals); ++i) {
    if (suffix == kDecimals[i]) return Unit{Format::kDecimal, static_cast<int32_t>(i) * 3 - 9};
  }
  constexpr std::string_view kBinaries = "KMGTPE";
  if (suffix.size() == 2 && suffix[1] == 'i') {
    const size_t at = kBinaries.find(suffix[0]);
    if (at == std::string_view::npos) return std::nullopt;
    return Unit{Format::kBinary, static_cast<int32_t>(at + 1) * 10};
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return std::nullopt;
  std::string_view digits = suffix.substr(1);
  if (digits[0] == '+') digits.remove_prefix(1);
  int64_t exponent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() ||
      (suffix[1] == '+' && digits[0] == '-')) {
    return std::nullopt;
  }
  return Unit{Format::kDecimal, static_cast<int32_t>(exponent)};  // cut like upstream
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The parts of "-1.50Gi": sign, "1", "50", "Gi".
struct Parts {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  std::string_view suffix;
};

std::string_view TakeDigits(std::string_view& rest) {
  size_t end = 0;
  while (end < rest.size() && IsDigit(rest[end])) ++end;
  const std::string_view digits = rest.substr(0, end);
  rest.remove_prefix(end);
  return digits;
}

std::optional<Parts> Split(std::string_view text) {
  if (text.empty()) return std::nullopt;
  Parts parts;
  std::string_view rest = text;
  if (rest[0] == '-' || rest[0] == '+') {
    parts.negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  rest.remove_prefix(std::min(rest.find_first_not_of('0'), rest.size()));
  parts.whole = TakeDigits(rest);
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    parts.fraction = TakeDigits(rest);
  }
  parts.suffix = rest;
  rest.remove_prefix(std::min(rest.find_first_not_of("eEinumkKMGTP"), rest.size()));
  if (!rest.empty() && (rest[0] == '-' || rest[0] == '+')) rest.remove_prefix(1);
  TakeDigits(rest);
  if (!rest.empty()) return std::nullopt;
  if (parts.whole.empty()) parts.whole = "0";
  return parts;
}

// The text has a digit; "." and "-" are not numbers, but "0." is.
bool HasDigit(std::string_view text) {
  const size_t start = text.find_first_not_of("+-");
  if (start == std::string_view::npos) return false;
  const std::string_view number = text.substr(start);
  return IsDigit(number[0]) || (number.size() > 1 && number[0] == '.' && IsDigit(number[1]));
}

bool Multiply(int64_t a, int64_t b, int64_t& out) { return !__builtin_mul_overflow(a, b, &out); }

// value * 10^exponent; none on overflow. Zero is zero for any exponent, as upstream.
std::optional<int64_t> ScaleUp(int64_t value, int64_t exponent) {
  if (value == 0) return 0;
  for (int64_t i = 0; i < exponent; ++i) {
    if (!Multiply(value, 10, value)) return std::nullopt;
  }
  return value;
}

int Order(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

// Computed as in Go, from two tables.
double PowerOfTen(int exponent) {
  static constexpr double kUnits[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23,
                                      1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31};
  static constexpr double kSteps[] = {1e0,   1e32,  1e64,  1e96,  1e128,
                                      1e160, 1e192, 1e224, 1e256, 1e288};
  static constexpr double kNegativeSteps[] = {1e-0,   1e-32,  1e-64,  1e-96,  1e-128, 1e-160,
                                              1e-192, 1e-224, 1e-256, 1e-288, 1e-320};
  if (exponent >= 0 && exponent <= 308) return kSteps[exponent / 32] * kUnits[exponent % 32];
  if (exponent >= -323 && exponent <= 0) {
    return kNegativeSteps[-exponent / 32] / kUnits[-exponent % 32];
  }
  return exponent > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace

const Amount* Amount::Store(Arena& arena, const Amount& amount) {
  return new (arena.Allocate(sizeof(Amount))) Amount(amount);
}

const Amount* Amount::Store(Arena& arena, const Decimal& decimal) {
  Amount amount(0, -decimal.scale());
  amount.large_ = true;
  amount.negative_ = decimal.negative();
  const std::span<uint32_t> limbs = arena.NewArray<uint32_t>(decimal.limbs().size());
  std::copy(decimal.limbs().begin(), decimal.limbs().end(), limbs.begin());
  amount.limbs_ = limbs;
  return Store(arena, amount);
}

const Amount* Amount::Parse(Arena& arena, std::string_view text) {
  const auto parts = Split(text);
  if (!parts) return nullptr;
  const auto unit = UnitOf(parts->suffix);
  if (!unit) return nullptr;

  const auto digits = static_cast<int32_t>(parts->whole.size() + parts->fraction.size());
  int32_t scale = 0;
  int32_t precision = -1;
  int64_t factor = 1;
  if (unit->format == Format::kDecimal) {
    scale = unit->exponent;
    precision = kMaxFactors - digits;
  } else if (parts->fraction.empty()) {
    factor = int64_t{1} << unit->exponent;
    precision = 15 - static_cast<int32_t>(parts->whole.size()) -
                static_cast<int32_t>(static_cast<float>(unit->exponent) * 3 / 10) - 1;
  }
  const std::string all = std::string(parts->whole) + std::string(parts->fraction);
  if (precision >= 0) {
    scale -= static_cast<int32_t>(parts->fraction.size());
    int64_t value = 0;
    std::from_chars(all.data(), all.data() + all.size(), value);
    if (scale >= kNano && Multiply(value, factor, value)) {
      return Store(arena, Amount(parts->negative ? -value : value, scale));
    }
  }
  // Upstream reads the number again here, and refuses one without digits.
  if (!HasDigit(text)) return nullptr;
  Decimal number(all, false, static_cast<int32_t>(parts->fraction.size()));
  if (unit->format == Format::kDecimal) {
    number.set_scale(number.scale() - unit->exponent);
  } else {
    for (int i = 0; i < unit->exponent; ++i) number.Multiply(2);
  }
  if (number.Sign() != 0) number.RoundUp(-kNano);
  const Decimal largest(std::numeric_limits<int64_t>::max(), 0);
  if (unit->format == Format::kBinary && number.Compare(largest) > 0) number = largest;
  if (parts->negative && number.Sign() != 0) number.Negate();
  return Store(arena, number);
}

Decimal Amount::ToDecimal() const {
  if (!large_) return {value_, -exponent_};
  return Decimal::FromLimbs({limbs_.begin(), limbs_.end()}, negative_, -exponent_);
}

int Amount::Sign() const {
  if (large_) return limbs_.empty() ? 0 : negative_ ? -1 : 1;
  return Order(value_, 0);
}

std::optional<int64_t> Amount::AsInt() const {
  if (large_ || exponent_ < 0) return std::nullopt;
  return ScaleUp(value_, exponent_);
}

double Amount::AsDouble() const {
  const double base = large_ ? ToDecimal().Unscaled() : static_cast<double>(value_);
  return exponent_ == 0 ? base : base * PowerOfTen(exponent_);
}

int Amount::Compare(const Amount& other) const {
  if (large_ || other.large_) return ToDecimal().Compare(other.ToDecimal());
  if (exponent_ == other.exponent_) return Order(value_, other.value_);
  return ToDecimal().Compare(other.ToDecimal());
}

bool Amount::AddInPlace(int64_t value, int32_t exponent) {
  if (value == 0) return true;
  if (value_ == 0) {
    value_ = value;
    exponent_ = exponent;
    return true;
  }
  const int64_t difference = int64_t{exponent_} - exponent;
  const auto mine = difference > 0 ? ScaleUp(value_, difference) : value_;
  const auto theirs = difference < 0 ? ScaleUp(value, -difference) : value;
  int64_t sum = 0;
  if (!mine || !theirs || __builtin_add_overflow(*mine, *theirs, &sum)) return false;
  value_ = sum;
  exponent_ = std::min(exponent_, exponent);
  return true;
}

const Amount* Amount::Add(Arena& arena, const Amount& a, const Amount& b) {
  if (!a.large_ && !b.large_) {
    Amount sum = a;
    if (sum.AddInPlace(b.value_, b.exponent_)) return Store(arena, sum);
  }
  return Store(arena, Decimal::Add(a.ToDecimal(), b.ToDecimal()));
}

const Amount* Amount::Subtract(Arena& arena, const Amount& a, const Amount& b) {
  if (!a.large_ && !b.large_) {
    Amount sum = a;
    // The smallest number is its own negative, as upstream.
    const auto negative = static_cast<int64_t>(0 - static_cast<uint64_t>(b.value_));
    if (sum.AddInPlace(negative, b.exponent_)) return Store(arena, sum);
  }
  Decimal other = b.ToDecimal();
  other.Negate();
  return Store(arena, Decimal::Add(a.ToDecimal(), other));
}

}  // namespace nos::cel
