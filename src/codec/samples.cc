#include "codec/samples.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "codec/bits.h"

namespace nos {
namespace {

constexpr char kVersion = 1;
// Encoding of a column, in bits 0 to 2; with kGaps a bit map follows that marks the present
// samples.
enum Mode : uint8_t { kAbsent, kConstant, kSteps, kOffsets, kXor };
constexpr uint8_t kGaps = 0x80;

constexpr std::array<double, 7> kTens = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
constexpr double kMaxExact = 9007199254740992.0;  // 2^53: integers up to here are doubles
constexpr int kMaxUnary = 20;
constexpr int kMaxRice = 40;

using Integers = std::vector<uint64_t>;

bool Same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

// --- Rice codes: quotient in unary, remainder in `k` bits. Large values are written literally. ---

void PutRice(BitWriter& bits, uint64_t value, int k) {
  const uint64_t quotient = value >> k;
  if (quotient < kMaxUnary) {
    bits.Put((uint64_t{2} << quotient) - 2, static_cast<int>(quotient) + 1);
    return bits.Put(value, k);
  }
  bits.Put((uint64_t{1} << kMaxUnary) - 1, kMaxUnary);
  const auto width = static_cast<int>(std::bit_width(value));
  bits.Put(static_cast<uint64_t>(width), 7);
  bits.Put(value, width);
}

uint64_t TakeRice(BitReader& bits, int k) {
  uint64_t quotient = 0;
  while (quotient < kMaxUnary && bits.Take(1) == 1) ++quotient;
  if (quotient < kMaxUnary) return (quotient << k) | bits.Take(k);
  const auto width = static_cast<int>(bits.Take(7));
  return width > 64 ? 0 : bits.Take(width);
}

size_t RiceBits(std::span<const uint64_t> values, int k) {
  size_t sum = 0;
  for (const uint64_t value : values) {
    const uint64_t quotient = value >> k;
    sum += quotient < kMaxUnary ? quotient + 1 + static_cast<size_t>(k)
                                : kMaxUnary + 7 + static_cast<size_t>(std::bit_width(value));
  }
  return sum;
}

struct Rice {
  int k = 0;
  size_t bits = 0;
};

// An estimate of the best k: the bit width of the mean and its neighbours, and 0 for mostly zeros.
Rice BestRice(std::span<const uint64_t> values) {
  long double sum = 0;
  for (const uint64_t value : values) sum += static_cast<long double>(value);
  const auto mean = static_cast<uint64_t>(sum / static_cast<long double>(values.size() + 1));
  const int middle = std::min(kMaxRice, static_cast<int>(std::bit_width(mean)));
  Rice best{0, RiceBits(values, 0)};
  for (int k = std::max(1, middle - 2); k <= std::min(kMaxRice, middle + 1); ++k) {
    const size_t bits = RiceBits(values, k);
    if (bits < best.bits) best = {k, bits};
  }
  return best;
}

void PutAllRice(std::string& out, std::span<const uint64_t> values, int k) {
  BitWriter bits(out);
  for (const uint64_t value : values) PutRice(bits, value, k);
}

// --- Times ---

std::string EncodeTimes(const std::vector<int64_t>& times) {
  std::string out;
  PutVarint(out, ZigZag(static_cast<uint64_t>(times.front())));
  Integers codes;
  uint64_t before = static_cast<uint64_t>(times.front());
  uint64_t step = 0;
  for (size_t i = 1; i < times.size(); ++i) {
    const uint64_t now = static_cast<uint64_t>(times[i]);
    codes.push_back(ZigZag(now - before - step));
    step = now - before;
    before = now;
  }
  // The first step is unlike the others, so it is not part of the Rice-coded sequence.
  if (!codes.empty()) PutVarint(out, codes.front());
  if (codes.size() < 2) return out;
  const std::span<const uint64_t> rest = std::span(codes).subspan(1);
  const Rice rice = BestRice(rest);
  out += static_cast<char>(rice.k);
  PutAllRice(out, rest, rice.k);
  return out;
}

bool DecodeTimes(std::string_view bytes, size_t count, std::vector<int64_t>& times) {
  uint64_t code = 0;
  if (!TakeVarint(bytes, code)) return false;
  uint64_t now = UnZigZag(code);
  times.push_back(static_cast<int64_t>(now));
  if (count == 1) return true;
  if (!TakeVarint(bytes, code)) return false;
  uint64_t step = UnZigZag(code);
  now += step;
  times.push_back(static_cast<int64_t>(now));
  if (count == 2) return true;
  if (bytes.empty() || bytes.front() < 0 || bytes.front() > kMaxRice) return false;
  const int k = static_cast<uint8_t>(bytes.front());
  BitReader bits(bytes.substr(1));
  for (size_t i = 2; i < count && bits.good(); ++i) {
    step += UnZigZag(TakeRice(bits, k));
    now += step;
    times.push_back(static_cast<int64_t>(now));
  }
  return bits.good();
}

// --- Columns ---

// The values as integers times 10^-exponent, exactly, if there is such an exponent.
struct Scaled {
  size_t exponent = 0;
  std::vector<int64_t> integers;
};

bool Scale(const std::vector<double>& values, Scaled& scaled) {
  scaled.integers.clear();
  for (const double value : values) {
    const double product = std::nearbyint(value * kTens[scaled.exponent]);
    if (!(std::abs(product) < kMaxExact)) return false;
    const auto integer = static_cast<int64_t>(product);
    if (!Same(static_cast<double>(integer) / kTens[scaled.exponent], value)) return false;
    scaled.integers.push_back(integer);
  }
  return true;
}

std::optional<Scaled> ScaledOf(const std::vector<double>& values) {
  Scaled scaled;
  for (; scaled.exponent < kTens.size(); ++scaled.exponent) {
    if (Scale(values, scaled)) return scaled;
  }
  return std::nullopt;
}

void PutDouble(std::string& out, double value) {
  const auto bits = std::bit_cast<uint64_t>(value);
  for (int i = 0; i < 8; ++i) out += static_cast<char>(bits >> (8 * i));
}

// Integers: exponent, k, base, then Rice codes either of the steps between neighbours or of the
// distances from the minimum.
void PutIntegers(std::string& out, uint8_t flags, const Scaled& scaled) {
  const auto base = static_cast<uint64_t>(scaled.integers.front());
  const auto least = static_cast<uint64_t>(*std::ranges::min_element(scaled.integers));
  Integers steps, offsets;
  uint64_t before = base;
  for (const int64_t integer : scaled.integers) {
    steps.push_back(ZigZag(static_cast<uint64_t>(integer) - before));
    offsets.push_back(static_cast<uint64_t>(integer) - least);
    before = static_cast<uint64_t>(integer);
  }
  steps.erase(steps.begin());
  const Rice by_steps = BestRice(steps);
  const Rice by_offsets = BestRice(offsets);
  const bool use_steps = by_steps.bits <= by_offsets.bits;
  out[0] = static_cast<char>(flags | (use_steps ? kSteps : kOffsets));
  out += static_cast<char>(scaled.exponent);
  out += static_cast<char>(use_steps ? by_steps.k : by_offsets.k);
  PutVarint(out, ZigZag(use_steps ? base : least));
  use_steps ? PutAllRice(out, steps, by_steps.k) : PutAllRice(out, offsets, by_offsets.k);
}

// XOR with the previous value. '0': equal; '10': its significant bits lie in the same window as the
// last ones; '11': 6 bits leading zeros, 6 bits length - 1, then the significant bits.
void PutXor(std::string& out, uint8_t flags, const std::vector<double>& values) {
  out[0] = static_cast<char>(flags | kXor);
  BitWriter bits(out);
  uint64_t before = 0;
  int leading = 0, length = 0;
  for (const double value : values) {
    const auto now = std::bit_cast<uint64_t>(value);
    const uint64_t changed = now ^ before;
    before = now;
    if (changed == 0) {
      bits.Put(0, 1);
      continue;
    }
    const int zeros = std::countl_zero(changed), tail = std::countr_zero(changed);
    if (length > 0 && zeros >= leading && tail >= 64 - leading - length) {
      bits.Put(0b10, 2);
    } else {
      leading = zeros;
      length = 64 - zeros - tail;
      bits.Put(0b11, 2);
      bits.Put(static_cast<uint64_t>(leading), 6);
      bits.Put(static_cast<uint64_t>(length - 1), 6);
    }
    bits.Put(changed >> (64 - leading - length), length);
  }
}

std::string EncodeColumn(const std::vector<double>& column) {
  std::vector<double> there;
  for (const double value : column) {
    if (!std::isnan(value)) there.push_back(value);
  }
  if (there.empty()) return std::string(1, kAbsent);
  std::string out(1, '\0');
  uint8_t flags = 0;
  if (there.size() < column.size()) {
    flags = kGaps;
    BitWriter bits(out);
    for (const double value : column) bits.Put(std::isnan(value) ? 0 : 1, 1);
  }
  if (std::ranges::all_of(there, [&](double value) { return Same(value, there.front()); })) {
    out[0] = static_cast<char>(flags | kConstant);
    PutDouble(out, there.front());
    return out;
  }
  const auto scaled = ScaledOf(there);
  scaled ? PutIntegers(out, flags, *scaled) : PutXor(out, flags, there);
  return out;
}

bool TakeIntegers(std::string_view bytes, bool steps, std::vector<double>& there) {
  if (bytes.size() < 2) return false;
  const auto exponent = static_cast<uint8_t>(bytes[0]);
  const auto k = static_cast<uint8_t>(bytes[1]);
  if (exponent >= kTens.size() || k > kMaxRice) return false;
  bytes.remove_prefix(2);
  uint64_t code = 0;
  if (!TakeVarint(bytes, code)) return false;
  uint64_t base = UnZigZag(code);
  BitReader bits(bytes);
  for (size_t i = 0; i < there.size() && bits.good(); ++i) {
    uint64_t integer = base;
    if (!steps) {
      integer += TakeRice(bits, k);
    } else if (i > 0) {
      integer += UnZigZag(TakeRice(bits, k));
      base = integer;
    }
    there[i] = static_cast<double>(static_cast<int64_t>(integer)) / kTens[exponent];
  }
  return bits.good();
}

bool TakeXor(std::string_view bytes, std::vector<double>& there) {
  BitReader bits(bytes);
  uint64_t now = 0;
  int leading = 0, length = 0;
  for (double& value : there) {
    if (bits.Take(1) == 1) {
      if (bits.Take(1) == 1) {
        leading = static_cast<int>(bits.Take(6));
        length = static_cast<int>(bits.Take(6)) + 1;
      }
      if (length == 0 || leading + length > 64 || !bits.good()) return false;
      now ^= bits.Take(length) << (64 - leading - length);
    }
    value = std::bit_cast<double>(now);
    if (std::isnan(value)) return false;
  }
  return bits.good();
}

bool TakeConstant(std::string_view bytes, std::vector<double>& there) {
  if (bytes.size() != 8) return false;
  uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  std::ranges::fill(there, std::bit_cast<double>(bits));
  return !std::isnan(there.front());
}

bool DecodeColumn(std::string_view bytes, size_t count, std::vector<double>& column) {
  column.assign(count, kNoSample);
  if (bytes.empty()) return false;
  const auto flags = static_cast<uint8_t>(bytes.front());
  const uint8_t mode = flags & ~kGaps;
  bytes.remove_prefix(1);
  if (flags == kAbsent) return bytes.empty();
  std::vector<size_t> places;
  const size_t mask = (flags & kGaps) != 0 ? (count + 7) / 8 : 0;
  if (bytes.size() < mask) return false;
  BitReader bits(bytes.substr(0, mask));
  for (size_t i = 0; i < count; ++i) {
    if (mask == 0 || bits.Take(1) == 1) places.push_back(i);
  }
  bytes.remove_prefix(mask);
  if (places.empty()) return false;
  std::vector<double> there(places.size());
  const bool good = mode == kConstant  ? TakeConstant(bytes, there)
                    : mode == kXor     ? TakeXor(bytes, there)
                    : mode == kSteps   ? TakeIntegers(bytes, true, there)
                    : mode == kOffsets ? TakeIntegers(bytes, false, there)
                                       : false;
  for (size_t i = 0; i < places.size(); ++i) column[places[i]] = there[i];
  return good;
}

// Removes a length-prefixed part from the front.
bool TakePart(std::string_view& bytes, std::string_view& part) {
  uint64_t size = 0;
  if (!TakeVarint(bytes, size) || size > bytes.size()) return false;
  part = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return true;
}

void PutPart(std::string& out, const std::string& part) {
  PutVarint(out, part.size());
  out += part;
}

Result<SampleBlock> Decode(std::string_view bytes, std::optional<size_t> only) {
  const Status damaged = Invalid("samples: the block is damaged");
  uint64_t count = 0, columns = 0;
  if (bytes.empty() || bytes.front() != kVersion) return damaged;
  bytes.remove_prefix(1);
  std::string_view part;
  if (!TakeVarint(bytes, count) || !TakeVarint(bytes, columns) || !TakePart(bytes, part) ||
      count == 0 || count > kMaxBlockSamples || columns > kMaxBlockColumns) {
    return damaged;
  }
  SampleBlock block;
  if (!DecodeTimes(part, count, block.times)) return damaged;
  for (uint64_t i = 0; i < columns; ++i) {
    if (!TakePart(bytes, part)) return damaged;
    if (only && i != *only) continue;
    if (!DecodeColumn(part, count, block.columns.emplace_back())) return damaged;
  }
  if (!bytes.empty()) return damaged;
  if (only && *only >= columns) return NotFound("samples: no such column");
  return block;
}

}  // namespace

std::string EncodeSamples(const SampleBlock& block) {
  std::string out(1, kVersion);
  PutVarint(out, block.times.size());
  PutVarint(out, block.columns.size());
  PutPart(out, EncodeTimes(block.times));
  for (const auto& column : block.columns) PutPart(out, EncodeColumn(column));
  return out;
}

Result<SampleBlock> DecodeSamples(std::string_view bytes) { return Decode(bytes, std::nullopt); }
Result<SampleBlock> DecodeSamples(std::string_view bytes, size_t column) {
  return Decode(bytes, column);
}

}  // namespace nos
