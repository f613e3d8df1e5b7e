#include "cel/library/format_string.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cel/syntax/literals.h"
#include "cel/values/equality.h"
#include "cel/values/map.h"
#include "cel/values/network.h"
#include "cel/values/number_text.h"
#include "cel/values/runes.h"
#include "cel/values/step_limit.h"
#include "cel/values/timestamp.h"

namespace nos::cel {
namespace {

constexpr int kDefaultPrecision = 6;
constexpr int64_t kMaxPrecision = 10'000;

struct Broken {};

struct Clause {
  char letter = 0;
  int64_t precision = kDefaultPrecision;
};

// Reads a clause behind "%".
std::optional<Clause> TakeClause(std::string_view& rest) {
  Clause clause;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), clause.precision);
    if (error != std::errc{} || rest.starts_with('-')) return std::nullopt;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  if (rest.empty() || std::string_view("sdfebxXo").find(rest[0]) == std::string_view::npos) {
    return std::nullopt;
  }
  clause.letter = rest[0];
  rest.remove_prefix(1);
  return clause;
}

// The text as Go's %q writes it.
std::string GoQuote(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t size = 0;
    const char32_t rune = DecodeRune(text, size);
    constexpr std::string_view kSpecial = "\a\b\f\n\r\t\v\\\"";
    constexpr std::string_view kLetters = "abfnrtv\\\"";
    const size_t at = rune < 0x80 ? kSpecial.find(static_cast<char>(rune)) : std::string_view::npos;
    if (rune == kRuneError && size == 1) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else if (at != std::string_view::npos) {
      out += '\\';
      out += kLetters[at];
    } else if (rune < 0x20 || rune == 0x7f) {
      out += fmt::format("\\x{:02x}", static_cast<uint32_t>(rune));
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out + "\"";
}

std::string Fixed(double value, int64_t precision) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{:.{}f}", value, precision);
}

std::string DurationText(int64_t nanos) {
  const int64_t whole = nanos / kNanosPerSecond;
  return FormatPlain(static_cast<double>(whole) +
                     static_cast<double>(nanos % kNanosPerSecond) / 1e9) +
         "s";
}

std::string Whole(const Value& value) {
  if (value.is(Kind::kInt)) return std::to_string(value.integer());
  if (value.is(Kind::kUint)) return std::to_string(value.natural());
  throw Broken();
}

std::string Nested(const Value& value);

std::string Elements(const ListValue& list) {
  std::string out = "[";
  for (uint64_t i = 0; i < list.size(); ++i) {
    StepLimit::Spend(1);
    if (i != 0) out += ", ";
    out += Nested(list.At(i));
  }
  return out + "]";
}

std::string Entries(const MapValue& map) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (uint64_t i = 0; i < map.size(); ++i) {
    StepLimit::Spend(1);
    const MapEntry entry = map.At(i);
    switch (entry.key.kind()) {
      case Kind::kString:
      case Kind::kBool:
      case Kind::kInt:
      case Kind::kUint:
        break;
      default:
        throw Broken();
    }
    entries.emplace_back(Nested(entry.key), Nested(entry.value));
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out = "{";
  for (const auto& [key, value] : entries) {
    if (out.size() > 1) out += ", ";
    out += key;
    out += ":";
    out += value;
  }
  return out + "}";
}

// A value inside a list or a map.
std::string Nested(const Value& value) {
  switch (value.kind()) {
    case Kind::kInt:
    case Kind::kUint:
      return Whole(value);
    case Kind::kBool:
      return value.boolean() ? "true" : "false";
    case Kind::kNull:
      return "null";
    case Kind::kType:
      return std::string(value.text());
    case Kind::kString:
      return GoQuote(value.text());
    case Kind::kBytes:
      if (!ValidUtf8(value.text())) throw Broken();
      return "b" + GoQuote(value.text());
    case Kind::kTimestamp:
      return "timestamp(" + GoQuote(value.timestamp().ToString()) + ")";
    case Kind::kDuration:
      return "duration(" + GoQuote(DurationText(value.integer())) + ")";
    case Kind::kList:
      return Elements(value.list());
    case Kind::kMap:
      return Entries(value.map());
    case Kind::kDouble: {
      const std::string text = Fixed(value.number(), kDefaultPrecision);
      return std::isfinite(value.number()) ? text : GoQuote(text);
    }
    default:
      throw Broken();
  }
}

std::string Text(const Value& value) {
  switch (value.kind()) {
    case Kind::kString:
      return std::string(value.text());
    case Kind::kBytes:
      if (!ValidUtf8(value.text())) throw Broken();
      return std::string(value.text());
    case Kind::kDouble:
      return FormatGeneral(value.number());
    case Kind::kTimestamp:
      return value.timestamp().ToString();
    case Kind::kDuration:
      return DurationText(value.integer());
    default:
      return Nested(value);
  }
}

double Number(const Value& value) {
  if (value.is(Kind::kDouble)) return value.number();
  if (!value.is(Kind::kString)) throw Broken();
  const std::string_view text = value.text();
  const auto number = ParseDouble(text);
  if ((text != "NaN" && text != "Infinity" && text != "-Infinity") || !number) throw Broken();
  return *number;
}

// English numbers: 1,234.5 with the signs that Unicode has for infinity.
std::string Localized(double value, const Clause& clause) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "\u221e" : "-\u221e";
  if (clause.precision > kMaxPrecision) throw Broken();
  if (clause.letter == 'e') {
    // 1.5 times ten to the third.
    const std::string plain = fmt::format("{:.{}e}", value, clause.precision);
    const size_t e = plain.find('e');
    std::string_view exponent = std::string_view(plain).substr(e + 1);
    const bool negative = exponent[0] == '-';
    exponent.remove_prefix(1);
    std::string out = plain.substr(0, e) + "\u202f\u00d7\u202f10";
    constexpr const char* kSuperscripts[] = {"\u2070", "\u00b9", "\u00b2", "\u00b3", "\u2074",
                                             "\u2075", "\u2076", "\u2077", "\u2078", "\u2079"};
    if (negative) out += "\u207b";
    for (const char digit : exponent) out += kSuperscripts[digit - '0'];
    return out;
  }
  const std::string plain = Fixed(value, clause.precision);
  const size_t start = plain[0] == '-' ? 1 : 0;
  const size_t point = std::min(plain.find('.'), plain.size());
  std::string out = plain.substr(0, start);
  for (size_t i = start; i < point; ++i) {
    out += plain[i];
    if ((point - i) % 3 == 1 && i + 1 < point) out += ',';
  }
  return out + plain.substr(point);
}

std::string InBase(const Value& value, char letter) {
  if (value.is(Kind::kBool) && letter == 'b') return value.boolean() ? "1" : "0";
  if ((value.is(Kind::kString) || value.is(Kind::kBytes)) && (letter == 'x' || letter == 'X')) {
    std::string out;
    for (const char c : value.text()) {
      const auto byte = static_cast<unsigned char>(c);
      out += letter == 'x' ? fmt::format("{:02x}", byte) : fmt::format("{:02X}", byte);
    }
    return out;
  }
  const auto print = [letter](auto number) {
    switch (letter) {
      case 'b':
        return fmt::format("{:b}", number);
      case 'o':
        return fmt::format("{:o}", number);
      case 'x':
        return fmt::format("{:x}", number);
      default:
        return fmt::format("{:X}", number);
    }
  };
  if (value.is(Kind::kInt)) return print(value.integer());
  if (value.is(Kind::kUint)) return print(value.natural());
  throw Broken();
}

std::string Print(const Value& value, const Clause& clause) {
  switch (clause.letter) {
    case 's':
      return Text(value);
    case 'd':
      return Whole(value);
    case 'f':
    case 'e':
      return Localized(Number(value), clause);
    default:
      return InBase(value, clause.letter);
  }
}

// Calls back for each clause; false if the format is broken or asks for too many arguments.
bool Walk(std::string_view format, uint64_t available, std::string* text,
          const std::function<void(uint64_t, const Clause&)>& visit) {
  uint64_t next = 0;
  while (!format.empty()) {
    if (format[0] != '%') {
      if (text != nullptr) *text += format[0];
      format.remove_prefix(1);
      continue;
    }
    format.remove_prefix(1);
    if (format.starts_with('%')) {
      if (text != nullptr) *text += '%';
      format.remove_prefix(1);
      continue;
    }
    if (next >= available) return false;
    const auto clause = TakeClause(format);
    if (!clause) return false;
    visit(next++, *clause);
  }
  return true;
}

}  // namespace

Value FormatString(Arena& arena, std::string_view format, const ListValue& args) {
  std::string text;
  try {
    const bool ok = Walk(format, args.size(), &text, [&](uint64_t i, const Clause& clause) {
      StepLimit::Spend(1);
      text += Print(args.At(i), clause);
    });
    if (!ok) return Value::Error("could not parse the format string");
  } catch (const Broken&) {
    return Value::Error("the format string does not fit its arguments");
  }
  return Value::String(arena.Copy(text));
}

std::optional<std::string> FormatClauses(std::string_view format, size_t available) {
  std::string clauses;
  const bool ok = Walk(format, available, nullptr,
                       [&](uint64_t, const Clause& clause) { clauses += clause.letter; });
  if (!ok) return std::nullopt;
  return clauses;
}

}  // namespace nos::cel
