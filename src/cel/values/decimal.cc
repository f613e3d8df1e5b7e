#include "cel/values/decimal.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "cel/values/cancelled.h"

namespace nos::cel {
namespace {

constexpr uint64_t kBillion = 1'000'000'000;
constexpr int64_t kMaxDigits = 100'000;
constexpr uint32_t kPowers[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

}  // namespace

Decimal::Decimal(int64_t value, int32_t scale) : negative_(value < 0), scale_(scale) {
  for (uint64_t rest = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
       rest != 0; rest /= kBillion) {
    limbs_.push_back(static_cast<uint32_t>(rest % kBillion));
  }
}

Decimal::Decimal(std::string_view digits, bool negative, int32_t scale)
    : negative_(negative), scale_(scale) {
  for (size_t end = digits.size(); end > 0;) {
    const size_t start = end < 9 ? 0 : end - 9;
    uint32_t limb = 0;
    for (const char c : digits.substr(start, end - start)) {
      limb = limb * 10 + static_cast<uint32_t>(c - '0');
    }
    limbs_.push_back(limb);
    end = start;
  }
  Trim();
}

Decimal Decimal::FromLimbs(std::vector<uint32_t> limbs, bool negative, int32_t scale) {
  Decimal result;
  result.limbs_ = std::move(limbs);
  result.negative_ = negative;
  result.scale_ = scale;
  return result;
}

void Decimal::Trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
}

void Decimal::Multiply(uint32_t factor) {
  uint64_t carry = 0;
  for (uint32_t& limb : limbs_) {
    carry += uint64_t{limb} * factor;
    limb = static_cast<uint32_t>(carry % kBillion);
    carry /= kBillion;
  }
  if (carry != 0) limbs_.push_back(static_cast<uint32_t>(carry));
}

// REQUIRES: scale >= scale_.
void Decimal::Rescale(int32_t scale) {
  const int64_t shift = int64_t{scale} - scale_;
  scale_ = scale;
  if (limbs_.empty()) return;
  if (shift > kMaxDigits)
    throw Cancelled(Cancelled::Cause::kInternal, "internal error: quantity too large");
  Multiply(kPowers[shift % 9]);
  limbs_.insert(limbs_.begin(), static_cast<size_t>(shift / 9), 0);
}

void Decimal::RoundUp(int32_t scale) {
  if (scale_ <= scale) {
    Rescale(scale);
    return;
  }
  const int64_t drop = int64_t{scale_} - scale;
  scale_ = scale;
  if (limbs_.empty()) return;
  const size_t whole = std::min<size_t>(static_cast<size_t>(drop / 9), limbs_.size());
  bool rest = std::any_of(limbs_.begin(), limbs_.begin() + static_cast<int64_t>(whole),
                          [](uint32_t limb) { return limb != 0; });
  limbs_.erase(limbs_.begin(), limbs_.begin() + static_cast<int64_t>(whole));
  const uint32_t divisor = kPowers[drop % 9];
  uint64_t remainder = 0;
  for (size_t i = limbs_.size(); i-- > 0;) {
    remainder = remainder * kBillion + limbs_[i];
    limbs_[i] = static_cast<uint32_t>(remainder / divisor);
    remainder %= divisor;
  }
  rest = rest || remainder != 0;
  for (size_t i = 0; rest; ++i) {
    if (i == limbs_.size()) limbs_.push_back(0);
    limbs_[i] = static_cast<uint32_t>((limbs_[i] + 1) % kBillion);
    rest = limbs_[i] == 0;
  }
  Trim();
}

int Decimal::CompareLimbs(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

int Decimal::Compare(const Decimal& other) const {
  if (Sign() != other.Sign()) return Sign() < other.Sign() ? -1 : 1;
  if (Sign() == 0) return 0;
  Decimal a = *this;
  Decimal b = other;
  const int32_t scale = std::max(scale_, other.scale_);
  a.Rescale(scale);
  b.Rescale(scale);
  return CompareLimbs(a.limbs_, b.limbs_) * Sign();
}

Decimal Decimal::Add(const Decimal& left, const Decimal& right) {
  Decimal a = left;
  Decimal b = right;
  const int32_t scale = std::max(a.scale_, b.scale_);
  a.Rescale(scale);
  b.Rescale(scale);
  if (a.negative_ == b.negative_) {
    if (a.limbs_.size() < b.limbs_.size()) a.limbs_.resize(b.limbs_.size());
    uint64_t carry = 0;
    for (size_t i = 0; i < a.limbs_.size(); ++i) {
      carry += a.limbs_[i] + uint64_t{i < b.limbs_.size() ? b.limbs_[i] : 0};
      a.limbs_[i] = static_cast<uint32_t>(carry % kBillion);
      carry /= kBillion;
    }
    if (carry != 0) a.limbs_.push_back(static_cast<uint32_t>(carry));
    return a;
  }
  if (CompareLimbs(a.limbs_, b.limbs_) < 0) std::swap(a, b);
  int64_t borrow = 0;
  for (size_t i = 0; i < a.limbs_.size(); ++i) {
    borrow += int64_t{a.limbs_[i]} - int64_t{i < b.limbs_.size() ? b.limbs_[i] : 0};
    a.limbs_[i] = static_cast<uint32_t>((borrow + static_cast<int64_t>(kBillion)) %
                                        static_cast<int64_t>(kBillion));
    borrow = borrow < 0 ? -1 : 0;
  }
  a.Trim();
  return a;
}

std::string Decimal::Digits() const {
  std::string text = negative_ && !limbs_.empty() ? "-" : "";
  if (limbs_.empty()) return "0";
  text += std::to_string(limbs_.back());
  for (size_t i = limbs_.size() - 1; i-- > 0;) {
    const std::string limb = std::to_string(limbs_[i]);
    text.append(9 - limb.size(), '0');
    text += limb;
  }
  return text;
}

double Decimal::Unscaled() const {
  const std::string digits = Digits();
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::result_out_of_range) {
    value = negative_ ? -std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::infinity();
  }
  return value;
}

}  // namespace nos::cel
