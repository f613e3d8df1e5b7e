// A range of sizes or costs, with arithmetic that stops at the largest number.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace nos::cel {

inline constexpr uint64_t kUnbounded = std::numeric_limits<uint64_t>::max();

inline uint64_t AddBounded(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? kUnbounded : sum;
}

inline uint64_t MultiplyBounded(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kUnbounded : product;
}

// Rounded up.
inline uint64_t ScaleBounded(uint64_t value, double factor) {
  constexpr double kTop = 18446744073709551616.0;  // 2^64
  const auto number = static_cast<double>(value);
  if (number > 0 && factor > 0 && number > kTop / factor) return kUnbounded;
  const double scaled = std::ceil(number * factor);
  return scaled >= kTop ? kUnbounded : static_cast<uint64_t>(scaled);
}

struct Range {
  uint64_t min = 0;
  uint64_t max = 0;

  static constexpr Range Exactly(uint64_t value) { return {value, value}; }
  static constexpr Range Unknown() { return {0, kUnbounded}; }

  friend Range operator+(Range a, Range b) {
    return {AddBounded(a.min, b.min), AddBounded(a.max, b.max)};
  }
  friend Range operator*(Range a, Range b) {
    return {MultiplyBounded(a.min, b.min), MultiplyBounded(a.max, b.max)};
  }
  Range Times(double factor) const {
    return {ScaleBounded(min, factor), ScaleBounded(max, factor)};
  }
  Range Union(Range other) const { return {std::min(min, other.min), std::max(max, other.max)}; }
};

}  // namespace nos::cel
