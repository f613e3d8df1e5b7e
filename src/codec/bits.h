// Writes bits into bytes and reads them back, most significant first; variable-length integers
// (LEB128).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nos {

class BitWriter {
 public:
  explicit BitWriter(std::string& out) : out_(out) {}
  // The lowest `count` bits, 0 to 64.
  void Put(uint64_t bits, int count) {
    while (count > 0) {
      const int now = count < free_ ? count : free_;
      const uint64_t part = (bits >> (count - now)) & ((uint64_t{1} << now) - 1);
      if (free_ == 8) out_ += '\0';
      out_.back() = static_cast<char>(static_cast<uint8_t>(out_.back()) | (part << (free_ - now)));
      free_ = free_ == now ? 8 : free_ - now;
      count -= now;
    }
  }

 private:
  std::string& out_;
  int free_ = 8;  // free bits of the last byte; 8: begin a new byte
};

class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}
  // Takes 0 to 64 bits; beyond the end they are 0 and good() is false.
  uint64_t Take(int count) {
    uint64_t value = 0;
    while (count > 0) {
      if (at_ >= bytes_.size()) {
        good_ = false;
        return 0;
      }
      const int left = 8 - used_;
      const int now = count < left ? count : left;
      const auto byte = static_cast<uint8_t>(bytes_[at_]);
      value = (value << now) | ((byte >> (left - now)) & ((1U << now) - 1));
      used_ += now;
      if (used_ == 8) {
        used_ = 0;
        ++at_;
      }
      count -= now;
    }
    return value;
  }
  bool good() const { return good_; }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  int used_ = 0;
  bool good_ = true;
};

inline uint64_t ZigZag(uint64_t difference) { return (difference << 1) ^ (0 - (difference >> 63)); }
inline uint64_t UnZigZag(uint64_t code) { return (code >> 1) ^ (0 - (code & 1)); }

inline void PutVarint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

// Removes the integer from the front. False: truncated, or longer than 64 bits.
inline bool TakeVarint(std::string_view& bytes, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) return false;
    const auto byte = static_cast<uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace nos
