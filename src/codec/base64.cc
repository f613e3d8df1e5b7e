#include "codec/base64.h"

#include <cstdint>

namespace nos {
namespace {

// The six bits a character stands for, or -1.
int Bits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == '+') return 62;
  if (c == '/') return 63;
  return -1;
}

}  // namespace

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out;
  uint32_t buffer = 0;
  int held = 0;
  bool padded = false;
  for (char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '=') {
      padded = true;
      continue;
    }
    const int bits = Bits(c);
    if (bits < 0 || padded) return Invalid("not base64");
    buffer = buffer << 6 | static_cast<uint32_t>(bits);
    held += 6;
    if (held >= 8) {
      held -= 8;
      out += static_cast<char>(buffer >> held & 0xff);
    }
  }
  if (held == 6) return Invalid("not base64: it is cut off");
  return out;
}

}  // namespace nos
