#include "codec/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/json/parse_options.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/stream_parser.hpp>
#include <cmath>

namespace nos {
namespace {

std::string Escape(std::string_view text) {
  return boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

// Code points from U+0080 to U+FFFF that steer a terminal: C1 controls, and characters that change
// the writing direction of their neighbours.
bool Steers(unsigned code) {
  return code < 0xa0 || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

// The same JSON with these characters as \u escapes.
std::string ForTerminal(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const auto byte = [&](size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
    };
    const unsigned first = byte(0);
    size_t bytes = 1;
    unsigned code = first;
    if (first >= 0xc2 && first < 0xe0) {
      code = (first & 0x1f) << 6 | (byte(1) & 0x3f), bytes = 2;
    } else if (first >= 0xe0 && first < 0xf0) {
      code = (first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), bytes = 3;
    } else if (first >= 0xf0) {
      code = 0x10000, bytes = 4;
    }
    if (code >= 0x7f && Steers(code)) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += text.substr(at, bytes);
    }
    at += bytes;
  }
  return out;
}

void WritePretty(const Json& value, std::string& out, size_t indent) {
  const std::string pad(indent + 2, ' ');
  const auto close = [&](char bracket) {
    out += '\n';
    out.append(indent, ' ');
    out += bracket;
  };
  if (value.is_object() && !value.get_object().empty()) {
    char before = '{';
    for (const auto& [key, member] : value.get_object()) {
      out += before;
      out += '\n' + pad + Escape({key.data(), key.size()}) + ": ";
      WritePretty(member, out, indent + 2);
      before = ',';
    }
    close('}');
  } else if (value.is_array() && !value.get_array().empty()) {
    char before = '[';
    for (const Json& element : value.get_array()) {
      out += before;
      out += '\n' + pad;
      WritePretty(element, out, indent + 2);
      before = ',';
    }
    close(']');
  } else {
    out += boost::json::serialize(value);
  }
}

// Numbers beyond the range of double are read as infinities, which JSON cannot express.
bool AllFinite(const Json& value) {
  if (value.is_double()) return std::isfinite(value.get_double());
  if (value.is_array()) {
    const JsonArray& array = value.get_array();
    return std::all_of(array.begin(), array.end(), AllFinite);
  }
  if (!value.is_object()) return true;
  const JsonObject& object = value.get_object();
  return std::all_of(object.begin(), object.end(),
                     [](const auto& member) { return AllFinite(member.value()); });
}

}  // namespace

Result<Json> ParseJson(std::string_view text) {
  boost::json::parse_options options;
  options.max_depth = 100;
  boost::json::stream_parser parser({}, options);
  boost::json::error_code error;
  const size_t read = parser.write_some(text.data(), text.size(), error);
  if (!error) parser.finish(error);
  if (error) return Invalid(fmt::format("JSON: {} at byte {}", error.message(), read));
  const size_t rest = text.find_first_not_of(" \t\r\n", read);
  if (rest != std::string_view::npos) {
    return Invalid(fmt::format("JSON: unexpected text after the value at byte {}", rest));
  }
  Json value = parser.release();
  if (!AllFinite(value)) return Invalid("JSON: a number is beyond the range of double precision");
  return value;
}

std::string WriteJson(const Json& value) { return boost::json::serialize(value); }

std::string WriteJsonPretty(const Json& value) {
  std::string out;
  WritePretty(value, out, 0);
  return ForTerminal(out);
}

const Json* Find(const Json& value, std::string_view key) {
  const JsonObject* object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(key);
}

JsonObject& MakeObject(Json& value, std::string_view key) {
  if (!value.is_object()) value.emplace_object();
  Json& member = value.get_object()[key];
  if (!member.is_object()) member.emplace_object();
  return member.get_object();
}

}  // namespace nos
