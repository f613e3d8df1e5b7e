// Conversions between numbers, checked as upstream does it.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

namespace nos::cel {

inline constexpr double kTwoTo63 = 9223372036854775808.0;
inline constexpr double kTwoTo64 = 18446744073709551616.0;

// Truncated; none for NaN, infinities and values outside the range.
inline std::optional<int64_t> CheckedInt(double value) {
  if (std::isnan(value) || value <= -kTwoTo63 || value >= kTwoTo63) return std::nullopt;
  return static_cast<int64_t>(value);
}

inline std::optional<uint64_t> CheckedUint(double value) {
  if (std::isnan(value) || value < 0 || value >= kTwoTo64) return std::nullopt;
  return static_cast<uint64_t>(value);
}

inline std::optional<int64_t> LosslessInt(double value) {
  const auto result = CheckedInt(value);
  if (!result || static_cast<double>(*result) != value) return std::nullopt;
  return result;
}

inline std::optional<uint64_t> LosslessUint(double value) {
  const auto result = CheckedUint(value);
  if (!result || static_cast<double>(*result) != value) return std::nullopt;
  return result;
}

}  // namespace nos::cel
