// Serializes values to a text that identifies them: every part is prefixed with its length or ends
// with a mark, so that different values never have the same text.
//
//   class Writer : public KeyWriter<Writer> {
//    public:
//     using KeyWriter::Add;
//     void Add(const Taint& t) { All(t.key, t.value); }
//   };
//   Writer writer;
//   writer.All(name, taints);       // vectors, optionals, pairs and maps of what Add takes
//   std::string key = writer.Take();
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nos {

template <typename Derived>
class KeyWriter {
 public:
  void Add(std::string_view text) {
    Add(static_cast<int64_t>(text.size()));
    text_ += text;
  }
  void Add(const std::string& text) { Add(std::string_view(text)); }
  void Add(const char*) = delete;
  void Add(int64_t number) {
    char digits[24];
    const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
    text_.append(std::begin(digits), end);
    text_ += ';';
  }
  void Add(int32_t number) { Add(int64_t{number}); }
  void Add(bool flag) { text_ += flag ? 'y' : 'n'; }
  template <typename A, typename B>
  void Add(const std::pair<A, B>& pair) {
    All(pair.first, pair.second);
  }
  template <typename T>
  void Add(const std::optional<T>& value) {
    Add(value.has_value());
    if (value) self().Add(*value);
  }
  template <typename T>
  void Add(const std::vector<T>& values) {
    Add(static_cast<int64_t>(values.size()));
    for (const T& value : values) self().Add(value);
  }
  template <typename V>
  void Add(const std::map<std::string, V, std::less<>>& values) {
    Add(static_cast<int64_t>(values.size()));
    for (const auto& [key, value] : values) All(key, value);
  }
  template <typename... Parts>
  void All(const Parts&... parts) {
    (self().Add(parts), ...);
  }
  std::string Take() { return std::move(text_); }

 protected:
  // Adds bytes of a fixed number.
  void AddRaw(std::string_view bytes) { text_ += bytes; }

 private:
  friend Derived;
  KeyWriter() = default;

  Derived& self() { return static_cast<Derived&>(*this); }

  std::string text_;
};

}  // namespace nos
