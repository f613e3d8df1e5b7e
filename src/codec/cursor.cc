#include "codec/cursor.h"

#include <simdjson.h>

#include <algorithm>
#include <deque>
#include <string>

#include "base/text.h"

namespace nos {
namespace {

namespace ondemand = simdjson::ondemand;

// Removes the digits from the front. False: there are none.
bool TakeDigits(std::string_view& text) {
  const size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

// Checks the grammar of RFC 8259; size and precision are unlimited.
bool IsNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool zero = text.starts_with('0');
  const size_t before = text.size();
  if (!TakeDigits(text) || (zero && before - text.size() > 1)) return false;
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!TakeDigits(text)) return false;
  }
  if (!text.starts_with('e') && !text.starts_with('E')) return text.empty();
  text.remove_prefix(1);
  if (text.starts_with('+') || text.starts_with('-')) text.remove_prefix(1);
  return TakeDigits(text) && text.empty();
}

// Keeps the first error; after an error, nothing more is visited.
class TextCursor final : public Cursor {
 public:
  TextCursor(ondemand::value value, simdjson::error_code& error) : value_(value), error_(error) {}

  Kind kind() override {
    ondemand::json_type type{};
    if (!Check(value_.type().get(type))) return Kind::kNull;
    switch (type) {
      case ondemand::json_type::array:
        return Kind::kArray;
      case ondemand::json_type::object:
        return Kind::kObject;
      case ondemand::json_type::number:
        return Kind::kNumber;
      case ondemand::json_type::string:
        return Kind::kString;
      case ondemand::json_type::boolean:
        return Kind::kBool;
      case ondemand::json_type::null:
        break;
    }
    return Kind::kNull;
  }

  bool Bool() override {
    bool result = false;
    return Check(value_.get_bool().get(result)) && result;
  }

  std::string_view Text() override {
    if (kind() == Kind::kNumber) {
      const std::string_view token = Trim(value_.raw_json_token());
      return Check(IsNumber(token) ? simdjson::SUCCESS : simdjson::NUMBER_ERROR)
                 ? token
                 : std::string_view();
    }
    std::string_view text;
    return Check(value_.get_string().get(text)) ? text : std::string_view();
  }

  void Members(FunctionRef<void(std::string_view, Cursor&)> visit) override {
    ondemand::object object;
    if (!Check(value_.get_object().get(object))) return;
    for (auto field : object) {
      std::string_view key;
      ondemand::value value;
      if (!Check(field.unescaped_key().get(key)) || !Check(field.value().get(value))) return;
      TextCursor cursor(value, error_);
      visit(key, cursor);
      if (error_ != simdjson::SUCCESS) return;
    }
  }

  void Elements(FunctionRef<void(Cursor&)> visit) override {
    ondemand::array array;
    if (!Check(value_.get_array().get(array))) return;
    for (auto element : array) {
      ondemand::value value;
      if (!Check(element.get(value))) return;
      TextCursor cursor(value, error_);
      visit(cursor);
      if (error_ != simdjson::SUCCESS) return;
    }
  }

  std::string_view Raw() override {
    std::string_view raw;
    const Kind what = kind();
    if (what == Kind::kObject) {
      ondemand::object object;
      if (Check(value_.get_object().get(object))) Check(object.raw_json().get(raw));
    } else if (what == Kind::kArray) {
      ondemand::array array;
      if (Check(value_.get_array().get(array))) Check(array.raw_json().get(raw));
    } else {
      raw = value_.raw_json_token();
    }
    return Trim(raw);
  }

 private:
  bool Check(simdjson::error_code error) {
    if (error_ == simdjson::SUCCESS) error_ = error;
    return error_ == simdjson::SUCCESS;
  }

  ondemand::value value_;
  simdjson::error_code& error_;
};

class TreeCursor final : public Cursor {
 public:
  explicit TreeCursor(const Json& value) : value_(value) {}

  Kind kind() override {
    switch (value_.kind()) {
      case boost::json::kind::null:
        return Kind::kNull;
      case boost::json::kind::bool_:
        return Kind::kBool;
      case boost::json::kind::string:
        return Kind::kString;
      case boost::json::kind::array:
        return Kind::kArray;
      case boost::json::kind::object:
        return Kind::kObject;
      default:
        return Kind::kNumber;
    }
  }
  bool Bool() override { return value_.is_bool() && value_.get_bool(); }
  std::string_view Text() override {
    if (value_.is_string()) return View(value_.get_string());
    return text_ = WriteJson(value_);
  }
  void Members(FunctionRef<void(std::string_view, Cursor&)> visit) override {
    if (!value_.is_object()) return;
    for (const auto& member : value_.get_object()) {
      TreeCursor cursor(member.value());
      visit({member.key().data(), member.key().size()}, cursor);
    }
  }
  void Elements(FunctionRef<void(Cursor&)> visit) override {
    if (!value_.is_array()) return;
    for (const Json& element : value_.get_array()) {
      TreeCursor cursor(element);
      visit(cursor);
    }
  }
  std::string_view Raw() override { return text_ = WriteJson(value_); }

 private:
  const Json& value_;
  std::string text_;
};

// A parser and the padded copy of its input.
struct Reader {
  ondemand::parser parser;
  std::string padded;
};

Status Read(Reader& reader, std::string_view text, FunctionRef<void(Cursor&)> visit) {
  reader.padded.clear();
  reader.padded.reserve(text.size() + simdjson::SIMDJSON_PADDING);
  reader.padded.assign(text);
  ondemand::document document;
  ondemand::value root;
  simdjson::error_code error = reader.parser
                                   .iterate(simdjson::padded_string_view(
                                       reader.padded.data(), text.size(), reader.padded.capacity()))
                                   .get(document);
  if (error == simdjson::SUCCESS) error = document.get_value().get(root);
  if (error == simdjson::SUCCESS) {
    TextCursor cursor(root, error);
    visit(cursor);
  }
  // current_location() fails at the end of the document; if it succeeds, text follows the value.
  if (error == simdjson::SUCCESS && document.current_location().error() == simdjson::SUCCESS) {
    error = simdjson::TAPE_ERROR;
  }
  if (error == simdjson::SUCCESS) return Status::Ok();
  return Invalid(std::string("not JSON: ") + simdjson::error_message(error));
}

Status ReadText(std::string_view text, FunctionRef<void(Cursor&)> visit) {
  // One reader per nesting level: an item of a list is read while the list is being read.
  thread_local std::deque<Reader> readers;
  thread_local size_t depth = 0;
  if (readers.size() <= depth) readers.emplace_back();
  Reader& reader = readers[depth++];
  const Status status = Read(reader, text, visit);
  --depth;
  constexpr size_t kKeep = size_t{1} << 20;  // bytes; a rare giant buffer is released
  if (reader.padded.capacity() > kKeep) reader = Reader();
  return status;
}

}  // namespace

Status ReadJson(JsonSource source, FunctionRef<void(Cursor&)> visit) {
  if (source.cursor() != nullptr) {
    visit(*source.cursor());
    return Status::Ok();
  }
  if (source.tree() == nullptr) return ReadText(source.text(), visit);
  TreeCursor cursor(*source.tree());
  visit(cursor);
  return Status::Ok();
}

std::string StringOf(Cursor& value) {
  return value.kind() == Cursor::Kind::kString ? std::string(value.Text()) : std::string();
}

Result<Json> TreeOf(JsonSource source) {
  if (source.cursor() != nullptr) return ParseJson(source.cursor()->Raw());
  if (source.tree() != nullptr) return *source.tree();
  return ParseJson(source.text());
}

}  // namespace nos
