#include "codec/json_text.h"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>

namespace nos {

JsonText& JsonText::Key(std::string_view key) {
  Separate();
  text_ += '"';
  text_ += key;
  text_ += "\":";
  first_ = true;  // no comma before the value of a key
  return *this;
}

JsonText& JsonText::Text(std::string_view value) {
  Separate();
  const bool plain = std::ranges::none_of(value, [](char c) {
    return c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
  if (plain) {
    text_ += '"';
    text_ += value;
    text_ += '"';
  } else {
    text_ += boost::json::serialize(boost::json::string_view(value.data(), value.size()));
  }
  return *this;
}

JsonText& JsonText::Number(int64_t value) {
  Separate();
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text_.append(digits, end);
  return *this;
}

JsonText& JsonText::Number(double value) {
  if (!std::isfinite(value)) return Null();
  Separate();
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text_.append(digits, end);
  return *this;
}

}  // namespace nos
