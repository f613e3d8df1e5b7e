#include "cel/syntax/literals.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "cel/values/runes.h"

namespace nos::cel {
namespace {

uint32_t ReadDigits(std::string_view& rest, size_t count, int base) {
  uint32_t value = 0;
  const std::string_view digits = rest.substr(0, count);
  std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  rest.remove_prefix(count);
  return value;
}

char SimpleEscape(char c) {
  switch (c) {
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return c;
  }
}

// The lexer has checked the form of all escapes.
std::optional<std::string> Unescape(std::string_view rest, bool bytes) {
  std::string text;
  while (!rest.empty()) {
    if (rest[0] != '\\') {
      text += rest[0];
      rest.remove_prefix(1);
      continue;
    }
    const char c = rest[1];
    rest.remove_prefix(2);
    uint32_t rune = 0;
    switch (c) {
      case 'x':
      case 'X':
        rune = ReadDigits(rest, 2, 16);
        break;
      case 'u':
      case 'U':
        if (bytes) return std::nullopt;
        rune = ReadDigits(rest, c == 'u' ? 4 : 8, 16);
        break;
      case '0':
      case '1':
      case '2':
      case '3': {
        rune = static_cast<uint32_t>(c - '0') * 64;
        rune += ReadDigits(rest, 2, 8);
        break;
      }
      default:
        text += SimpleEscape(c);
        continue;
    }
    if (bytes) {
      text += static_cast<char>(rune);
    } else if (ValidRune(rune)) {
      AppendRune(text, rune);
    } else {
      return std::nullopt;
    }
  }
  return text;
}

std::string NormalizeNewlines(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\r') {
      out += text[i];
      continue;
    }
    out += '\n';
    if (i + 1 < text.size() && text[i + 1] == '\n') ++i;
  }
  return out;
}

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// Underscores stand between digits, or behind the prefix of a base.
bool GoodUnderscores(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  char last = '^';
  bool hex = false;
  if (text.size() >= 2 && text[0] == '0' &&
      std::string_view("box").find(Lower(text[1])) != std::string_view::npos) {
    hex = Lower(text[1]) == 'x';
    last = '0';
    text.remove_prefix(2);
  }
  for (const char c : text) {
    if ((c >= '0' && c <= '9') || (hex && Lower(c) >= 'a' && Lower(c) <= 'f')) {
      last = '0';
    } else if (c == '_') {
      if (last != '0') return false;
      last = '_';
    } else {
      if (last == '_') return false;
      last = '!';
    }
  }
  return last != '_';
}

// "0x1.8p3": Go requires the exponent.
std::optional<double> ParseHexDouble(std::string_view digits, bool negative) {
  if (digits.find_first_of("pP") == std::string_view::npos || digits[0] == '-') return std::nullopt;
  std::string text(digits);
  if (const size_t plus = text.find("p+"); plus != std::string::npos) text.erase(plus + 1, 1);
  if (const size_t plus = text.find("P+"); plus != std::string::npos) text.erase(plus + 1, 1);
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::hex);
  if (end != text.data() + text.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // Too small is zero, too large is an error.
    const size_t sign = text.find("p-");
    if (sign == std::string::npos && text.find("P-") == std::string::npos) return std::nullopt;
    value = 0;
  } else if (error != std::errc{}) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace

std::optional<std::string> Unquote(std::string_view token, bool bytes) {
  const std::string normal = NormalizeNewlines(token);
  std::string_view text = normal;
  const bool raw = text[0] == 'r' || text[0] == 'R';
  if (raw) text.remove_prefix(1);
  const bool triple = text.size() >= 6 && text[0] == text[1] && text[1] == text[2];
  const size_t quotes = triple ? 3 : 1;
  text = text.substr(quotes, text.size() - 2 * quotes);
  if (raw) return std::string(text);
  return Unescape(text, bytes);
}

std::optional<int64_t> ParseIntLiteral(std::string_view digits, bool negative) {
  const auto value = ParseUintLiteral(digits);
  constexpr uint64_t kTop = uint64_t{1} << 63;
  if (!value || *value > kTop || (!negative && *value == kTop)) return std::nullopt;
  return static_cast<int64_t>(negative ? 0 - *value : *value);
}

std::optional<uint64_t> ParseUintLiteral(std::string_view digits) {
  int base = 10;
  if (digits.starts_with("0x")) {
    base = 16;
    digits.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) {
    return std::nullopt;
  }
  return value;
}

std::optional<double> ParseDouble(std::string_view text) {
  if (text.find('_') != std::string_view::npos && !GoodUnderscores(text)) return std::nullopt;
  std::string plain;
  std::copy_if(text.begin(), text.end(), std::back_inserter(plain),
               [](char c) { return c != '_'; });
  std::string lower;
  std::transform(plain.begin(), plain.end(), std::back_inserter(lower), Lower);
  bool negative = false;
  std::string_view digits = lower;
  if (!digits.empty() && (digits[0] == '-' || digits[0] == '+')) {
    negative = digits[0] == '-';
    digits.remove_prefix(1);
  }
  const bool word = digits == "inf" || digits == "infinity" || digits == "nan";
  if (word && text.find('_') != std::string_view::npos) return std::nullopt;
  if (digits == "inf" || digits == "infinity") {
    const double infinity = std::numeric_limits<double>::infinity();
    return negative ? -infinity : infinity;
  }
  if (digits == "nan") {
    if (digits.size() != text.size()) return std::nullopt;  // no sign
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (digits.starts_with("0x")) return ParseHexDouble(digits.substr(2), negative);
  if (digits.empty() || digits.find_first_not_of("0123456789.e+-") != std::string_view::npos ||
      digits[0] == '-' || digits[0] == '+' || digits[0] == 'e') {
    return std::nullopt;
  }
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (end != digits.data() + digits.size()) return std::nullopt;
  if (error == std::errc::result_out_of_range) {
    // from_chars does not say whether it was too large or too small. A number below 1 has a
    // negative exponent or begins with zeros.
    const double approximate = std::strtod(std::string(digits).c_str(), nullptr);
    if (std::isinf(approximate)) return std::nullopt;
    value = approximate;
  } else if (error != std::errc{}) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

}  // namespace nos::cel
