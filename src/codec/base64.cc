#include "codec/base64.h"

#include <algorithm>
#include <cstdint>

namespace nos {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The six bits of a character, or -1.
int Bits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - i);
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    }
    for (size_t j = 0; j < 4; ++j) {
      text += j <= count ? kAlphabet[(group >> (18 - 6 * j)) & 63] : '=';
    }
  }
  return text;
}

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t buffer = 0;
  int held = 0;  // bits in `buffer` that are not yet in `out`
  size_t digits = 0, padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int bits = Bits(c);
    if (bits < 0 || padding > 0) return Invalid("not base64");
    ++digits;
    buffer = buffer << 6 | static_cast<uint32_t>(bits);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(buffer >> held & 0xff);
    }
  }
  if (digits % 4 == 1 || padding != (4 - digits % 4) % 4) {
    return Invalid("not base64: the text ends too early");
  }
  return out;
}

}  // namespace nos
