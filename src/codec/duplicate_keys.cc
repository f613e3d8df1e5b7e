#include "codec/duplicate_keys.h"

#include <fmt/format.h>

#include <boost/json/basic_parser_impl.hpp>
#include <limits>
#include <set>
#include <utility>

namespace nos {
namespace {

using Text = boost::json::string_view;
using Error = boost::json::error_code;

// Handler of Boost.JSON's parser: keeps the path to the current value, and the keys seen on each
// level of that path.
class KeyWatcher {
 public:
  static constexpr size_t max_object_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_array_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_key_size = std::numeric_limits<size_t>::max();
  static constexpr size_t max_string_size = std::numeric_limits<size_t>::max();

  size_t most = 0;
  std::vector<std::string> duplicates;

  bool on_document_begin(Error&) { return true; }
  bool on_document_end(Error&) { return true; }
  bool on_object_begin(Error&) { return Open(false); }
  bool on_object_end(size_t, Error&) { return Close(); }
  bool on_array_begin(Error&) { return Open(true); }
  bool on_array_end(size_t, Error&) { return Close(); }
  bool on_key_part(Text part, size_t, Error&) {
    key_.append(part.data(), part.size());
    return true;
  }
  bool on_key(Text part, size_t, Error&) {
    key_.append(part.data(), part.size());
    Level& level = levels_.back();
    level.step = std::exchange(key_, "");
    if (!level.keys.insert(level.step).second && duplicates.size() < most) {
      duplicates.push_back(Path());
    }
    return true;
  }
  bool on_string_part(Text, size_t, Error&) { return true; }
  bool on_string(Text, size_t, Error&) { return Element(); }
  bool on_number_part(Text, Error&) { return true; }
  bool on_int64(int64_t, Text, Error&) { return Element(); }
  bool on_uint64(uint64_t, Text, Error&) { return Element(); }
  bool on_double(double, Text, Error&) { return Element(); }
  bool on_bool(bool, Error&) { return Element(); }
  bool on_null(Error&) { return Element(); }
  bool on_comment_part(Text, Error&) { return true; }
  bool on_comment(Text, Error&) { return true; }

 private:
  struct Level {
    bool list = false;
    size_t next = 0;             // in a list: the index of the next element
    std::string step;            // in an object: the key that was read last
    std::set<std::string> keys;  // in an object: all keys so far
  };

  bool Open(bool list) {
    levels_.push_back({list, 0, {}, {}});
    return true;
  }
  bool Close() {
    levels_.pop_back();
    return Element();
  }
  // A value is complete.
  bool Element() {
    if (!levels_.empty()) ++levels_.back().next;
    return true;
  }
  std::string Path() const {
    std::string path;
    for (const Level& level : levels_) {
      path += level.list ? fmt::format("[{}]", level.next) : (path.empty() ? "" : ".") + level.step;
    }
    return path;
  }

  std::string key_;
  std::vector<Level> levels_;
};

}  // namespace

std::vector<std::string> FindDuplicateKeys(std::string_view text, size_t most) {
  boost::json::parse_options options;
  options.max_depth = 100;  // same limit as ParseJson
  boost::json::basic_parser<KeyWatcher> parser(options);
  parser.handler().most = most;
  Error error;
  parser.write_some(false, text.data(), text.size(), error);
  return std::move(parser.handler().duplicates);
}

}  // namespace nos
