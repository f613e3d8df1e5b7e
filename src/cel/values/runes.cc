#include "cel/values/runes.h"

namespace nos::cel {
namespace {

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

char32_t DecodeRune(std::string_view text, size_t& size) {
  const auto first = static_cast<unsigned char>(text[0]);
  size = 1;
  if (first < 0x80) return first;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
  if (length == 0 || first > 0xf4 || text.size() < length) return kRuneError;
  char32_t rune = first & (0x7f >> length);
  for (size_t i = 1; i < length; ++i) {
    if (!Continues(text[i])) return kRuneError;
    rune = (rune << 6) | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  const char32_t smallest = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
  if (rune < smallest || !ValidRune(rune)) return kRuneError;
  size = length;
  return rune;
}

void AppendRune(std::string& text, char32_t rune) {
  if (!ValidRune(rune)) rune = kRuneError;
  if (rune < 0x80) {
    text += static_cast<char>(rune);
  } else if (rune < 0x800) {
    text += static_cast<char>(0xc0 | (rune >> 6));
    text += static_cast<char>(0x80 | (rune & 0x3f));
  } else if (rune < 0x10000) {
    text += static_cast<char>(0xe0 | (rune >> 12));
    text += static_cast<char>(0x80 | ((rune >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (rune & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | (rune >> 18));
    text += static_cast<char>(0x80 | ((rune >> 12) & 0x3f));
    text += static_cast<char>(0x80 | ((rune >> 6) & 0x3f));
    text += static_cast<char>(0x80 | (rune & 0x3f));
  }
}

bool ValidRune(char32_t rune) { return rune <= 0x10ffff && (rune < 0xd800 || rune > 0xdfff); }

bool ValidUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t size = 0;
    if (DecodeRune(text, size) == kRuneError && size == 1) return false;
    text.remove_prefix(size);
  }
  return true;
}

uint64_t CountRunes(std::string_view text) {
  uint64_t count = 0;
  for (size_t i = 0; i < text.size(); ++count) {
    if (static_cast<unsigned char>(text[i]) < 0x80) {
      ++i;
      continue;
    }
    size_t size = 0;
    DecodeRune(text.substr(i), size);
    i += size;
  }
  return count;
}

std::u32string ToRunes(std::string_view text) {
  std::u32string runes;
  runes.reserve(text.size());
  while (!text.empty()) {
    size_t size = 0;
    runes += DecodeRune(text, size);
    text.remove_prefix(size);
  }
  return runes;
}

std::string FromRunes(std::u32string_view runes) {
  std::string text;
  text.reserve(runes.size());
  for (const char32_t rune : runes) AppendRune(text, rune);
  return text;
}

bool IsSpace(char32_t rune) {
  return (rune >= 0x09 && rune <= 0x0d) || rune == 0x20 || rune == 0x85 || rune == 0xa0 ||
         rune == 0x1680 || (rune >= 0x2000 && rune <= 0x200a) || rune == 0x2028 || rune == 0x2029 ||
         rune == 0x202f || rune == 0x205f || rune == 0x3000;
}

}  // namespace nos::cel
