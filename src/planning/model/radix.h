// Encodes vectors of small counts as single numbers: count i ranges from 0 to limit i.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace nos::planning {

class Radix {
 public:
  // size() is 0 if there would be more than `most` vectors.
  Radix(std::span<const int> limits, size_t most) : limits_(limits.begin(), limits.end()) {
    for (const int limit : limits_) {
      strides_.push_back(size_);
      size_ *= static_cast<size_t>(limit) + 1;
      if (size_ > most) {
        size_ = 0;
        return;
      }
    }
  }
  size_t size() const { return size_; }
  size_t digits() const { return limits_.size(); }
  int limit(size_t i) const { return limits_[i]; }
  size_t stride(size_t i) const { return strides_[i]; }
  int Digit(size_t number, size_t i) const {
    return static_cast<int>(number / strides_[i] % (static_cast<size_t>(limits_[i]) + 1));
  }
  // The sum of two vectors, capped at the limits.
  size_t Add(size_t a, size_t b) const {
    size_t sum = 0;
    for (size_t i = 0; i < limits_.size(); ++i) {
      const int digit = Digit(a, i) + Digit(b, i);
      sum += static_cast<size_t>(digit < limits_[i] ? digit : limits_[i]) * strides_[i];
    }
    return sum;
  }
  // The difference of two vectors, at least 0.
  size_t Subtract(size_t a, size_t b) const {
    size_t difference = 0;
    for (size_t i = 0; i < limits_.size(); ++i) {
      const int digit = Digit(a, i) - Digit(b, i);
      difference += static_cast<size_t>(digit > 0 ? digit : 0) * strides_[i];
    }
    return difference;
  }

 private:
  std::vector<int> limits_;
  std::vector<size_t> strides_;
  size_t size_ = 1;
};

}  // namespace nos::planning
