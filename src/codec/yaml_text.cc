#include <algorithm>

#include "base/text.h"
#include "codec/yaml.h"

namespace nos {
namespace {

constexpr std::string_view kPlain = "._/@+-";

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Plain scalars that some version of YAML reads as null, a boolean or a number need quotes: a text
// is plain if it begins with a letter, and is none of these words.
bool IsPlain(std::string_view text) {
  constexpr std::string_view kWords[] = {"null", "true", "false", "yes", "no",
                                         "on",   "off",  "y",     "n"};
  if (text.empty() || !IsLetter(text.front())) return false;
  const auto plain = [](char c) {
    return IsLetter(c) || (c >= '0' && c <= '9') || kPlain.find(c) != std::string_view::npos;
  };
  return std::ranges::all_of(text, plain) &&
         std::ranges::find(kWords, ToLower(std::string(text))) == std::end(kWords);
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(View(value.get_string()))) {
    return std::string(View(value.get_string()));
  }
  return WriteJson(value);  // YAML contains JSON's scalars and its empty collections
}

bool IsScalar(const Json& value) {
  return (!value.is_array() || value.get_array().empty()) &&
         (!value.is_object() || value.get_object().empty());
}

void Write(const Json& value, const std::string& indent, std::string& out);

void WriteObject(const JsonObject& object, const std::string& indent, std::string& out) {
  bool first = true;
  for (const auto& [key, value] : object) {
    if (!first) out += indent;
    first = false;
    out += Scalar(Json(key)) + ":";
    if (IsScalar(value)) {
      out += " " + Scalar(value) + "\n";
    } else {
      out += "\n" + indent + (value.is_object() ? "  " : "");
      Write(value, indent + (value.is_object() ? "  " : ""), out);
    }
  }
}

// The caller has written the indentation of the first line.
void Write(const Json& value, const std::string& indent, std::string& out) {
  if (IsScalar(value)) {
    out += Scalar(value) + "\n";
  } else if (value.is_object()) {
    WriteObject(value.get_object(), indent, out);
  } else {
    bool first = true;
    for (const Json& element : value.get_array()) {
      out += (first ? "" : indent) + "- ";
      first = false;
      Write(element, indent + "  ", out);
    }
  }
}

}  // namespace

std::string WriteYaml(const Json& value) {
  std::string out;
  Write(value, "", out);
  return out;
}

}  // namespace nos
