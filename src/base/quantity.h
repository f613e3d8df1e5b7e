// A Kubernetes resource quantity ("500m", "16Gi", "2"), exact.
//
// Source of the grammar: k8s.io/apimachinery resource.Quantity: a decimal number followed by a
// binary suffix (Ki Mi Gi Ti Pi Ei), a decimal suffix (n u m "" k M G T P E) or an exponent (e3,
// E3). Stored in billionths, so every value from 1n to 2^63-1 is exact. Smaller amounts
// are rounded up to 1n and larger ones are capped at 2^63-1, like in Kubernetes.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace nos {

class Quantity {
 public:
  constexpr Quantity() = default;
  static constexpr Quantity FromValue(int64_t value) { return Quantity(__int128{value} * kNano); }
  static constexpr Quantity FromMilli(int64_t milli) {
    return Quantity(__int128{milli} * (kNano / 1000));
  }

  // Error: kInvalid with the text and the cause.
  static Result<Quantity> Parse(std::string_view text);

  // Rounded up to a whole number or to whole thousandths, like Kubernetes' Value() and
  // MilliValue().
  int64_t Value() const;
  int64_t MilliValue() const;
  bool IsWhole() const { return nano_ % kNano == 0; }
  // Shortest decimal form: "500m", "2", "17179869184".
  std::string ToString() const;
  // With a binary suffix if it divides exactly ("16Gi"), else like ToString().
  std::string ToBinaryString() const;

  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity(a.nano_ + b.nano_);
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity(a.nano_ - b.nano_);
  }

 private:
  static constexpr int64_t kNano = 1'000'000'000;
  constexpr explicit Quantity(__int128 nano) : nano_(nano) {}
  __int128 nano_ = 0;
};

}  // namespace nos
