#include "sim/apiserver/base64.h"

#include <algorithm>
#include <cstdint>

namespace nos::sim {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string Base64Encode(std::string_view bytes) {
  std::string text;
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

std::optional<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes;
  for (size_t i = 0; i < text.size(); i += 4) {
    const size_t padding = i + 4 < text.size() ? 0 : text[i + 2] == '=' ? 2 : text[i + 3] == '=';
    uint32_t group = 0;
    for (size_t j = 0; j < 4; ++j) {
      const size_t digit = j >= 4 - padding ? 0 : kAlphabet.find(text[i + j]);
      if (digit == std::string_view::npos) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(digit);
    }
    for (size_t j = 0; j < 3 - padding; ++j) {
      bytes += static_cast<char>(group >> (16 - 8 * j) & 0xff);
    }
  }
  return bytes;
}

}  // namespace nos::sim
