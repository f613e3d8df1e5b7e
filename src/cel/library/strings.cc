// Strings (cel-go's extension library, version 2): indexOf, replace, split, format and others.
#include <algorithm>
#include <string>

#include "cel/library/format_string.h"
#include "cel/library/function.h"
#include "cel/values/equality.h"
#include "cel/values/list.h"
#include "cel/values/runes.h"
#include "cel/values/step_limit.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;

constexpr Value OutOfRange() { return Value::Error("index out of range"); }

Value CharAt(Arena& arena, Args args) {
  const std::u32string runes = ToRunes(args[0].text());
  const int64_t index = args[1].integer();
  const auto size = static_cast<int64_t>(runes.size());
  if (index < 0 || index > size) return OutOfRange();
  if (index == size) return Value::String("");
  return StringValue(arena, FromRunes({&runes[static_cast<size_t>(index)], 1}));
}

// The place of `part` at `at` in `text`.
bool IsAt(const std::u32string& text, const std::u32string& part, int64_t at) {
  StepLimit::Spend(1 + part.size() / 8);
  return text.compare(static_cast<size_t>(at), part.size(), part) == 0;
}

Value IndexOf(Arena&, Args args) {
  const std::u32string text = ToRunes(args[0].text());
  const std::u32string part = ToRunes(args[1].text());
  const int64_t offset = args.size() == 3 ? args[2].integer() : 0;
  const auto size = static_cast<int64_t>(text.size());
  if (offset < 0) return OutOfRange();
  if (part.empty()) return Value::Int(std::min(offset, size));
  for (int64_t i = offset; i <= size - static_cast<int64_t>(part.size()); ++i) {
    if (IsAt(text, part, i)) return Value::Int(i);
  }
  return Value::Int(-1);
}

Value LastIndexOf(Arena&, Args args) {
  const std::u32string text = ToRunes(args[0].text());
  const std::u32string part = ToRunes(args[1].text());
  const auto size = static_cast<int64_t>(text.size());
  int64_t offset = size - 1;
  if (args.size() == 3) {
    offset = args[2].integer();
  } else if (part.empty()) {
    return Value::Int(size);
  } else if (args[0].text().size() < args[1].text().size()) {
    return Value::Int(-1);
  }
  if (offset < 0) return OutOfRange();
  if (part.empty()) return Value::Int(std::min(offset, size));
  if (offset >= size) return Value::Int(-1);
  offset = std::min(offset, size - static_cast<int64_t>(part.size()));
  for (int64_t i = offset; i >= 0; --i) {
    if (IsAt(text, part, i)) return Value::Int(i);
  }
  return Value::Int(-1);
}

template <char kFirst, char kLast, int kShift>
Value MapAscii(Arena& arena, Args args) {
  std::string text;
  std::string_view rest = args[0].text();
  while (!rest.empty()) {
    size_t size = 0;
    char32_t rune = DecodeRune(rest, size);
    rest.remove_prefix(size);
    if (rune >= char32_t{kFirst} && rune <= char32_t{kLast}) {
      rune = static_cast<char32_t>(static_cast<int>(rune) + kShift);
    }
    AppendRune(text, rune);
  }
  return StringValue(arena, text);
}

Value Replace(Arena& arena, Args args) {
  const std::string_view text = args[0].text();
  const std::string_view old = args[1].text();
  const std::string_view replacement = args[2].text();
  int64_t left = args.size() == 4 ? args[3].integer() : -1;
  if (old == replacement || left == 0) return args[0];
  std::string out;
  size_t at = 0;
  if (old.empty()) {  // before every character and at the end
    for (; left != 0; --left) {
      StepLimit::Spend(1 + replacement.size() / 8);
      out += replacement;
      if (at == text.size()) break;
      size_t size = 0;
      DecodeRune(text.substr(at), size);
      out += text.substr(at, size);
      at += size;
    }
  } else {
    for (; left != 0; --left) {
      const size_t found = text.find(old, at);
      if (found == std::string_view::npos) break;
      StepLimit::Spend(1 + replacement.size() / 8);
      out += text.substr(at, found - at);
      out += replacement;
      at = found + old.size();
    }
  }
  out += text.substr(at);
  return StringValue(arena, out);
}

Value Split(Arena& arena, Args args) {
  std::string_view rest = args[0].text();
  const std::string_view separator = args[1].text();
  const int64_t limit = args.size() == 3 ? args[2].integer() : -1;
  std::vector<Value> parts;
  const auto full = [&] { return limit > 0 && parts.size() + 1 >= static_cast<size_t>(limit); };
  if (limit != 0 && separator.empty()) {
    while (!rest.empty() && !full()) {
      size_t size = 0;
      DecodeRune(rest, size);
      parts.push_back(Value::String(rest.substr(0, size)));
      rest.remove_prefix(size);
    }
    if (!rest.empty()) parts.push_back(Value::String(rest));
  } else if (limit != 0) {
    while (!full()) {
      const size_t found = rest.find(separator);
      if (found == std::string_view::npos) break;
      parts.push_back(Value::String(rest.substr(0, found)));
      rest.remove_prefix(found + separator.size());
    }
    parts.push_back(Value::String(rest));
  }
  StepLimit::Spend(parts.size());
  const std::span<Value> stored = arena.NewArray<Value>(parts.size());
  std::copy(parts.begin(), parts.end(), stored.begin());
  return Value::Of(ListValue::Of(arena, stored));
}

Value Substring(Arena& arena, Args args) {
  const std::u32string runes = ToRunes(args[0].text());
  const auto size = static_cast<int64_t>(runes.size());
  const int64_t start = args[1].integer();
  const int64_t end = args.size() == 3 ? args[2].integer() : size;
  if (start < 0 || start > size || end < start || end > size) return OutOfRange();
  return StringValue(arena, FromRunes(std::u32string_view(runes).substr(
                                static_cast<size_t>(start), static_cast<size_t>(end - start))));
}

Value Trim(Arena&, Args args) {
  const std::string_view text = args[0].text();
  size_t start = text.size();
  size_t end = 0;
  for (size_t i = 0; i < text.size();) {
    size_t size = 0;
    if (!IsSpace(DecodeRune(text.substr(i), size))) {
      start = std::min(start, i);
      end = i + size;
    }
    i += size;
  }
  return Value::String(start < end ? text.substr(start, end - start) : std::string_view());
}

Value Format(Arena& arena, Args args) {
  return FormatString(arena, args[0].text(), args[1].list());
}

Value Quote(Arena& arena, Args args) {
  std::string out = "\"";
  for (const char32_t rune : ToRunes(args[0].text())) {
    constexpr std::string_view kSpecial = "\a\b\f\n\r\t\v\\\"";
    constexpr std::string_view kLetters = "abfnrtv\\\"";
    const size_t at = rune < 0x80 ? kSpecial.find(static_cast<char>(rune)) : std::string_view::npos;
    if (at != std::string_view::npos) {
      out += '\\';
      out += kLetters[at];
    } else {
      AppendRune(out, rune);
    }
  }
  return StringValue(arena, out + "\"");
}

Value Join(Arena& arena, Args args) {
  const ListValue& list = args[0].list();
  const std::string_view separator = args.size() == 2 ? args[1].text() : std::string_view();
  std::string out;
  for (uint64_t i = 0; i < list.size(); ++i) {
    const Value element = list.At(i);
    if (!element.is(Kind::kString)) return Value::Error("join: an element is not a string");
    StepLimit::Spend(1 + (element.text().size() + separator.size()) / 8);
    if (i != 0) out += separator;
    out += element.text();
  }
  return StringValue(arena, out);
}

}  // namespace

void DeclareStrings(Declarer& declare) {
  using namespace types;
  const Type* const s = &kString;
  const Type* const strings = declare.types().List(s);
  declare.Member("charAt", "string_char_at_int", {s, &kInt}, s, CharAt);
  declare.Member("indexOf", "string_index_of_string", {s, s}, &kInt, IndexOf);
  declare.Member("indexOf", "string_index_of_string_int", {s, s, &kInt}, &kInt, IndexOf);
  declare.Member("lastIndexOf", "string_last_index_of_string", {s, s}, &kInt, LastIndexOf);
  declare.Member("lastIndexOf", "string_last_index_of_string_int", {s, s, &kInt}, &kInt,
                 LastIndexOf);
  declare.Member("lowerAscii", "string_lower_ascii", {s}, s, MapAscii<'A', 'Z', 32>);
  declare.Member("replace", "string_replace_string_string", {s, s, s}, s, Replace);
  declare.Member("replace", "string_replace_string_string_int", {s, s, s, &kInt}, s, Replace);
  declare.Member("split", "string_split_string", {s, s}, strings, Split);
  declare.Member("split", "string_split_string_int", {s, s, &kInt}, strings, Split);
  declare.Member("substring", "string_substring_int", {s, &kInt}, s, Substring);
  declare.Member("substring", "string_substring_int_int", {s, &kInt, &kInt}, s, Substring);
  declare.Member("trim", "string_trim", {s}, s, Trim);
  declare.Member("upperAscii", "string_upper_ascii", {s}, s, MapAscii<'a', 'z', -32>);
  declare.Member("format", "string_format", {s, declare.types().List(&kDyn)}, s, Format,
                 Binding::kVariadic);
  declare.Global("strings.quote", "strings_quote", {s}, s, Quote);
  declare.Member("join", "list_join", {strings}, s, Join);
  declare.Member("join", "list_join_string", {strings, s}, s, Join);
}

}  // namespace nos::cel
