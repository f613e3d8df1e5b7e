// A JSON value that is read once, from front to back: straight from text (simdjson, no tree is
// built) or out of a tree. One decoder serves both.
//
//   Status read = ReadJson(text_or_tree, [&](Cursor& object) {
//     object.Members([&](std::string_view key, Cursor& value) {
//       if (key == "name" && value.kind() == Cursor::Kind::kString) name = value.Text();
//     });
//   });
//
// A value that is not asked for is skipped. Each of Text, Bool, Members, Elements and Raw may be
// called once on a value and only if its kind allows. Views live until the next member or element.
#pragma once

#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/status.h"
#include "codec/json.h"

namespace nos {

class Cursor {
 public:
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  virtual Kind kind() = 0;
  virtual bool Bool() = 0;
  // A string without its escapes, or a number as it is written.
  virtual std::string_view Text() = 0;
  virtual void Members(FunctionRef<void(std::string_view key, Cursor& value)> visit) = 0;
  virtual void Elements(FunctionRef<void(Cursor& value)> visit) = 0;
  // The value as JSON text.
  virtual std::string_view Raw() = 0;

 protected:
  ~Cursor() = default;
};

// JSON to be read: a text, a tree, or what a cursor stands at. Refers to it; to be read once.
class JsonSource {
 public:
  JsonSource(Cursor& cursor) : cursor_(&cursor) {}      // NOLINT(google-explicit-constructor)
  JsonSource(std::string_view text) : text_(text) {}    // NOLINT(google-explicit-constructor)
  JsonSource(const std::string& text) : text_(text) {}  // NOLINT(google-explicit-constructor)
  JsonSource(const Json& tree) : tree_(&tree) {}        // NOLINT(google-explicit-constructor)
  JsonSource(const char* text) : text_(text) {}         // NOLINT(google-explicit-constructor)

  Cursor* cursor() const { return cursor_; }
  const Json* tree() const { return tree_; }
  std::string_view text() const { return text_; }

 private:
  // The first that is not null; else the text.
  Cursor* cursor_ = nullptr;
  const Json* tree_ = nullptr;
  std::string_view text_;
};

// Error: kInvalid when a text is not one JSON value; what came before the fault has been visited by
// then. How deep it is nested costs nothing: recursion is the visitor's. Thread-safe.
Status ReadJson(JsonSource source, FunctionRef<void(Cursor&)> visit);
// The value if it is a string, else "".
std::string StringOf(Cursor& value);
// As a tree of its own. Error: as ParseJson.
Result<Json> TreeOf(JsonSource source);

}  // namespace nos
