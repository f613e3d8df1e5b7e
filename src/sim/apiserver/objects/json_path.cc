#include "sim/apiserver/objects/json_path.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text.h"

namespace nos::sim {
namespace {

using Values = std::vector<const Json*>;

std::string_view Unquote(std::string_view text) {
  const bool quoted = text.size() >= 2 && (text.front() == '\'' || text.front() == '"') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

Values Field(const Values& from, std::string_view name) {
  Values found;
  for (const Json* value : from) {
    if (const Json* member = Find(*value, name)) found.push_back(member);
  }
  return found;
}

// "?(@.a.b==\"c\")": selects the elements whose field has that value.
Values Filter(const Values& from, std::string_view expression) {
  Values found;
  const size_t at = expression.find("==");
  if (!expression.starts_with("?(@") || !expression.ends_with(')') ||
      at == std::string_view::npos) {
    return found;
  }
  const std::string_view path = Trim(expression.substr(3, at - 3));
  const std::string_view wanted =
      Unquote(Trim(expression.substr(at + 2, expression.size() - at - 3)));
  if (path.find("[?") != std::string_view::npos) return found;
  const auto matches = [&](const Json& element) {
    const Values values = EvaluatePath(path, element);
    if (values.empty()) return false;
    const Json& value = *values.front();
    return value.is_string() ? View(value.get_string()) == wanted : WriteJson(value) == wanted;
  };
  for (const Json* value : from) {
    if (!value->is_array()) continue;
    for (const Json& element : value->get_array()) {
      if (matches(element)) found.push_back(&element);
    }
  }
  return found;
}

Values Subscript(const Values& from, std::string_view inside) {
  if (inside.starts_with('?')) return Filter(from, inside);
  const auto index = ParseInt(inside);
  if (inside != "*" && !index) return Field(from, Unquote(inside));
  Values found;
  for (const Json* value : from) {
    if (!value->is_array()) continue;
    const JsonArray& array = value->get_array();
    if (index) {
      const int64_t at = *index < 0 ? *index + static_cast<int64_t>(array.size()) : *index;
      if (at >= 0 && at < static_cast<int64_t>(array.size())) {
        found.push_back(&array[static_cast<size_t>(at)]);
      }
      continue;
    }
    for (const Json& element : array) found.push_back(&element);
  }
  return found;
}

// The end of the bracket that opens at the start of `path`; ignores brackets in quotes.
size_t ClosingBracket(std::string_view path) {
  char quote = 0;
  for (size_t i = 1; i < path.size(); ++i) {
    if (quote != 0) {
      if (path[i] == quote) quote = 0;
    } else if (path[i] == '"' || path[i] == '\'') {
      quote = path[i];
    } else if (path[i] == ']') {
      return i;
    }
  }
  return std::string_view::npos;
}

}  // namespace

Values EvaluatePath(std::string_view path, const Json& value) {
  Values values{&value};
  while (!path.empty() && !values.empty()) {
    if (path[0] == '[') {
      const size_t end = ClosingBracket(path);
      if (end == std::string_view::npos) return {};
      values = Subscript(values, path.substr(1, end - 1));
      path.remove_prefix(end + 1);
      continue;
    }
    if (path[0] == '.') path.remove_prefix(1);
    // "\." is a dot in a name.
    std::string name;
    size_t i = 0;
    for (; i < path.size() && path[i] != '.' && path[i] != '['; ++i) {
      if (path[i] == '\\' && i + 1 < path.size()) ++i;
      name += path[i];
    }
    if (i > 0) values = Field(values, name);
    path.remove_prefix(i);
    if (i == 0 && !path.empty() && path[0] == '.') return {};
  }
  return values;
}

}  // namespace nos::sim
