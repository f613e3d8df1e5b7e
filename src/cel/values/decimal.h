// Decimal numbers of any size: digits and the number of them behind the point.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace nos::cel {

class Decimal {
 public:
  Decimal() = default;
  Decimal(int64_t value, int32_t scale);
  // REQUIRES: digits only.
  Decimal(std::string_view digits, bool negative, int32_t scale);

  int Sign() const { return limbs_.empty() ? 0 : negative_ ? -1 : 1; }
  // Digits behind the point; negative: zeros before it.
  int32_t scale() const { return scale_; }
  void set_scale(int32_t scale) { scale_ = scale; }
  void Negate() { negative_ = !negative_; }

  void Multiply(uint32_t factor);
  // At most `scale` digits behind the point, away from zero.
  void RoundUp(int32_t scale);
  // Throws Cancelled for exponents that would fill the memory.
  int Compare(const Decimal& other) const;
  static Decimal Add(const Decimal& a, const Decimal& b);

  // The digits without a point, as the nearest double.
  double Unscaled() const;
  std::string Digits() const;
  // All of the number, for the arena.
  const std::vector<uint32_t>& limbs() const { return limbs_; }
  static Decimal FromLimbs(std::vector<uint32_t> limbs, bool negative, int32_t scale);
  bool negative() const { return negative_; }

 private:
  void Rescale(int32_t scale);
  void Trim();
  static int CompareLimbs(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b);

  std::vector<uint32_t> limbs_;  // billions, least significant first
  bool negative_ = false;
  int32_t scale_ = 0;
};

}  // namespace nos::cel
