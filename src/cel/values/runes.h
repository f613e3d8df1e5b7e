// Text as Unicode code points. A byte that is no UTF-8 counts as one character, U+FFFD, as in Go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nos::cel {

inline constexpr char32_t kRuneError = 0xfffd;

// The first character and the number of its bytes. REQUIRES: text is not empty.
char32_t DecodeRune(std::string_view text, size_t& size);
// U+FFFD for what is no code point.
void AppendRune(std::string& text, char32_t rune);
bool ValidRune(char32_t rune);
bool ValidUtf8(std::string_view text);
uint64_t CountRunes(std::string_view text);
std::u32string ToRunes(std::string_view text);
std::string FromRunes(std::u32string_view runes);
// White space as Unicode defines it.
bool IsSpace(char32_t rune);

}  // namespace nos::cel
