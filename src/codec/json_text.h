// Writes JSON directly into text, without a tree: for answers of many megabytes.
//
//   JsonText json;
//   json.Begin('{').Key("gpus").Begin('[').Number(1).End(']').Key("why").Text(reason).End('}');
//   json.text()
//
// The caller ensures that brackets match and that members have keys.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "codec/json.h"

namespace nos {

class JsonText {
 public:
  JsonText& Begin(char bracket) {
    Separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  JsonText& End(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  // REQUIRES: `key` needs no escapes.
  JsonText& Key(std::string_view key);
  JsonText& Text(std::string_view value);
  JsonText& Number(int64_t value);
  // null for values that JSON numbers cannot express (infinities, NaN).
  JsonText& Number(double value);
  JsonText& Bool(bool value) { return Raw(value ? "true" : "false"); }
  JsonText& Null() { return Raw("null"); }
  JsonText& Value(const Json& value) { return Raw(WriteJson(value)); }
  // REQUIRES: `json` is valid JSON.
  JsonText& Raw(std::string_view json) {
    Separate();
    text_ += json;
    return *this;
  }
  std::string& text() { return text_; }

 private:
  void Separate() {
    if (!first_) text_ += ',';
    first_ = false;
  }

  std::string text_;
  bool first_ = true;
};

}  // namespace nos
