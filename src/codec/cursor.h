// A JSON value that is read once, from front to back: either directly from text (simdjson, no tree
// is built) or from a tree. One decoder serves both.
//
//   Status read = ReadJson(text_or_tree, [&](Cursor& object) {
//     object.Members([&](std::string_view key, Cursor& value) {
//       if (key == "name" && value.kind() == Cursor::Kind::kString) name = value.Text();
//     });
//   });
//
// A value that is not requested is skipped. Each of Text, Bool, Members, Elements and Raw may be
// called once per value and only if its kind allows. Views live until the next member or element.
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
  // A string with escapes resolved, or a number in its original spelling.
  virtual std::string_view Text() = 0;
  virtual void Members(FunctionRef<void(std::string_view key, Cursor& value)> visit) = 0;
  virtual void Elements(FunctionRef<void(Cursor& value)> visit) = 0;
  // The value as JSON text.
  virtual std::string_view Raw() = 0;

 protected:
  ~Cursor() = default;
};

// Source of JSON: a text, a tree, or a cursor's current value. Refers to it; read it once.
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
  // The first pointer that is not null; else the text.
  Cursor* cursor_ = nullptr;
  const Json* tree_ = nullptr;
  std::string_view text_;
};

// Error: kInvalid if the text is not exactly one JSON value; the part before the fault has been
// visited by then. Nesting depth costs no stack here: only the visitor recurses. Thread-safe.
Status ReadJson(JsonSource source, FunctionRef<void(Cursor&)> visit);
// The value if it is a string, else "".
std::string StringOf(Cursor& value);
// Copies the value into a tree of its own. Error: as ParseJson.
Result<Json> TreeOf(JsonSource source);

}  // namespace nos
