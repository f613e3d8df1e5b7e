// A Kubernetes quantity as CEL sees it. Unlike nos::Quantity it keeps what upstream keeps: a number
// of 64 bits and a power of ten if the text fits, else digits of any length; CEL
// functions show which.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "cel/values/arena.h"
#include "cel/values/decimal.h"

namespace nos::cel {

class Amount {
 public:
  // Null if the text is no quantity. Throws Cancelled for exponents that would fill the memory.
  static const Amount* Parse(Arena& arena, std::string_view text);
  static Amount FromInt(int64_t value) { return {value, 0}; }

  int Sign() const;
  // The value if upstream holds it as an integer: not for digits beyond 64 bits, fractions, and
  // binary suffixes with a point.
  std::optional<int64_t> AsInt() const;
  double AsDouble() const;
  int Compare(const Amount& other) const;
  static const Amount* Add(Arena& arena, const Amount& a, const Amount& b);
  static const Amount* Subtract(Arena& arena, const Amount& a, const Amount& b);

 private:
  Amount(int64_t value, int32_t exponent) : value_(value), exponent_(exponent) {}
  static const Amount* Store(Arena& arena, const Amount& amount);
  static const Amount* Store(Arena& arena, const Decimal& decimal);
  Decimal ToDecimal() const;
  bool AddInPlace(int64_t value, int32_t exponent);

  int64_t value_ = 0;
  int32_t exponent_ = 0;  // of ten; minus the scale for long numbers
  bool negative_ = false;
  bool large_ = false;
  std::span<const uint32_t> limbs_;  // if large_
};

}  // namespace nos::cel
