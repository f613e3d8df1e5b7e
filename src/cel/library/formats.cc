// Formats that have names: format.dns1123Label().validate(x), format.named("uuid").
#include <algorithm>
#include <iterator>

#include "cel/library/function.h"
#include "cel/values/list.h"
#include "cel/values/named_format.h"
#include "cel/values/timestamp.h"
#include "cel/values/url.h"

namespace nos::cel {
namespace {

using Args = std::span<const Value>;
using Problems = std::vector<std::string>;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsAlphanumeric(char c) { return IsDigit(c) || IsLower(c) || IsUpper(c); }
bool IsLowerAlphanumeric(char c) { return IsDigit(c) || IsLower(c); }

bool IsLabel(std::string_view text) {
  return !text.empty() && IsLowerAlphanumeric(text.front()) && IsLowerAlphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLowerAlphanumeric(c) || c == '-'; });
}

bool IsSubdomain(std::string_view text) {
  while (true) {
    const size_t dot = text.find('.');
    if (!IsLabel(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// The name of a label: letters, digits, "-", "_" and ".".
bool IsLabelName(std::string_view text) {
  return !text.empty() && IsAlphanumeric(text.front()) && IsAlphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

// A generated name may end with "-", because characters follow.
std::string Complete(std::string_view prefix) {
  if (prefix.size() < 2 || !prefix.ends_with('-')) return std::string(prefix);
  return std::string(prefix.substr(0, prefix.size() - 2)) + "a";
}

Problems Collect(std::string_view text, size_t longest, bool matches, std::string_view rule) {
  Problems problems;
  if (text.size() > longest) {
    problems.push_back("must be no more than " + std::to_string(longest) + " characters");
  }
  if (!matches) problems.emplace_back(rule);
  return problems;
}

Problems Label(std::string_view text) {
  return Collect(text, 63, IsLabel(text), "must be a lowercase RFC 1123 label");
}
Problems LabelPrefix(std::string_view text) { return Label(Complete(text)); }
Problems Subdomain(std::string_view text) {
  return Collect(text, 253, IsSubdomain(text), "must be a lowercase RFC 1123 subdomain");
}
Problems SubdomainPrefix(std::string_view text) { return Subdomain(Complete(text)); }
Problems Rfc1035Label(std::string_view text) {
  return Collect(text, 63, IsLabel(text) && IsLower(text.front()), "must be a DNS-1035 label");
}
Problems Rfc1035LabelPrefix(std::string_view text) { return Rfc1035Label(Complete(text)); }
Problems LabelValue(std::string_view text) {
  return Collect(text, 63, text.empty() || IsLabelName(text), "must be a valid label value");
}

Problems QualifiedName(std::string_view text) {
  Problems problems;
  const size_t slash = text.find('/');
  std::string_view name = text;
  if (slash != std::string_view::npos) {
    name = text.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) return {"must be a valid label key"};
    problems =
        slash == 0 ? Problems{"the prefix must not be empty"} : Subdomain(text.substr(0, slash));
  }
  if (name.empty()) {
    problems.emplace_back("the name must not be empty");
  } else if (name.size() > 63) {
    problems.emplace_back("the name must be no more than 63 characters");
  }
  if (!IsLabelName(name)) problems.emplace_back("the name must be a valid label name");
  return problems;
}

Problems Uri(std::string_view text) {
  return Url::IsRequestUri(text) ? Problems{} : Problems{"must be a URI"};
}

bool IsUuid(std::string_view text) {
  for (const size_t group : {8, 4, 4, 4, 12}) {
    if (group != 8 && text.starts_with('-')) text.remove_prefix(1);
    if (text.size() < group) return false;
    for (const char c : text.substr(0, group)) {
      if (!IsDigit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F')) return false;
    }
    text.remove_prefix(group);
  }
  return text.empty();
}
Problems Uuid(std::string_view text) {
  return IsUuid(text) ? Problems{} : Problems{"does not match the UUID format"};
}

Problems Byte(std::string_view text) {
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  const std::string_view data = text.substr(0, text.size() - padding);
  const bool valid = !text.empty() && text.size() % 4 == 0 &&
                     std::all_of(data.begin(), data.end(),
                                 [](char c) { return IsAlphanumeric(c) || c == '+' || c == '/'; });
  return valid ? Problems{} : Problems{"invalid base64"};
}

bool IsDate(std::string_view text) {
  return text.size() == 10 && Timestamp::Parse(std::string(text) + "T00:00:00Z").has_value();
}
Problems Date(std::string_view text) {
  return IsDate(text) ? Problems{} : Problems{"invalid date"};
}

// "12:30:00.5+02:00" in lower case; any character may stand before the fraction.
bool IsTime(std::string_view text) {
  const auto two = [&](size_t at) { return IsDigit(text[at]) && IsDigit(text[at + 1]); };
  if (text.size() < 9 || !two(0) || text[2] != ':' || !two(3) || text[5] != ':' || !two(6)) {
    return false;
  }
  if (text.substr(0, 2) > "23" || text.substr(3, 2) > "59" || text.substr(6, 2) > "59")
    return false;
  const auto zone = [](std::string_view rest) {
    if (rest == "z") return true;
    return rest.size() == 6 && (rest[0] == '+' || rest[0] == '-') && IsDigit(rest[1]) &&
           IsDigit(rest[2]) && rest[3] == ':' && IsDigit(rest[4]) && IsDigit(rest[5]);
  };
  std::string_view rest = text.substr(8);
  if (zone(rest)) return true;
  rest.remove_prefix(1);
  size_t digits = 0;
  while (digits < rest.size() && IsDigit(rest[digits])) ++digits;
  return digits > 0 && zone(rest.substr(digits));
}
Problems DateTime(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (IsUpper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  const std::string_view all = lower;
  const size_t t = all.find('t');
  const std::string_view time = t == std::string_view::npos ? "" : all.substr(t + 1);
  const bool valid = IsDate(all.substr(0, t)) && IsTime(time.substr(0, time.find('t')));
  return valid ? Problems{} : Problems{"invalid datetime"};
}

struct Entry {
  std::string_view function;
  NamedFormat format;
};
constexpr Entry kFormats[] = {
    {"dns1123Label", {"DNS1123Label", 30, Label}},
    {"dns1123Subdomain", {"DNS1123Subdomain", 60, Subdomain}},
    {"dns1035Label", {"DNS1035Label", 30, Rfc1035Label}},
    {"qualifiedName", {"QualifiedName", 60, QualifiedName}},
    {"dns1123LabelPrefix", {"DNS1123LabelPrefix", 30, LabelPrefix}},
    {"dns1123SubdomainPrefix", {"DNS1123SubdomainPrefix", 60, SubdomainPrefix}},
    {"dns1035LabelPrefix", {"DNS1035LabelPrefix", 30, Rfc1035LabelPrefix}},
    {"labelValue", {"LabelValue", 40, LabelValue}},
    {"uri", {"URI", 1103, Uri}},
    {"uuid", {"uuid", 70, Uuid}},
    {"byte", {"byte", 84, Byte}},
    {"date", {"date", 71, Date}},
    {"datetime", {"datetime", 71, DateTime}},
};

Value Validate(Arena& arena, Args args) {
  const Problems problems = args[0].format().problems(args[1].text());
  if (problems.empty()) return Value::None();
  const std::span<Value> values = arena.NewArray<Value>(problems.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = StringValue(arena, problems[i]);
  return Value::Some(arena, Value::Of(ListValue::Of(arena, values)));
}

Value Named(Arena& arena, Args args) {
  for (const Entry& entry : kFormats) {
    if (entry.function == args[0].text()) return Value::Some(arena, Value::Of(&entry.format));
  }
  return Value::None();
}

template <size_t kIndex>
Value Constant(Arena&, Args) {
  return Value::Of(&kFormats[kIndex].format);
}

template <size_t... kIndexes>
void DeclareConstants(Declarer& declare, std::index_sequence<kIndexes...>) {
  (declare.Global("format." + std::string(kFormats[kIndexes].function),
                  "format." + std::string(kFormats[kIndexes].function), {}, &types::kFormat,
                  Constant<kIndexes>),
   ...);
}

}  // namespace

void DeclareFormats(Declarer& declare) {
  using namespace types;
  TypeStore& types = declare.types();
  declare.Member("validate", "format-validate", {&kFormat, &kString},
                 types.Optional(types.List(&kString)), Validate);
  declare.Global("format.named", "format-named", {&kString}, types.Optional(&kFormat), Named);
  DeclareConstants(declare, std::make_index_sequence<std::size(kFormats)>());
}

}  // namespace nos::cel
