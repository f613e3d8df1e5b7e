// The keys of a configuration, as their owner describes them.
//
//   void Describe(ConfigFields& fields) {
//     fields.Group("mps", [&] { fields.Flag("enabled", enabled_, "Share GPUs by memory."); });
//   }
//
// One description serves parsing, validation, printing and documentation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/function_ref.h"

namespace nos {

// Visits each field. `value` holds the default; a value in the file replaces it.
class ConfigFields {
 public:
  virtual ~ConfigFields() = default;
  virtual void Group(std::string_view key, FunctionRef<void()> fields) = 0;
  virtual void Text(std::string_view key, std::string& value, std::string_view help) = 0;
  // The value is one of `words`.
  virtual void Word(std::string_view key, std::string& value, const std::vector<std::string>& words,
                    std::string_view help) = 0;
  virtual void Flag(std::string_view key, bool& value, std::string_view help) = 0;
  virtual void Number(std::string_view key, int64_t& value, int64_t least, int64_t most,
                      std::string_view help) = 0;
  // A number of seconds, fractions allowed, or a Go duration ("1m30s").
  virtual void Seconds(std::string_view key, Duration& value, Duration least, Duration most,
                       std::string_view help) = 0;
  // A decimal number in millionths: 2.5 is 2,500,000. `value` -1: not set.
  virtual void Decimal(std::string_view key, int64_t& value, int64_t least, int64_t most,
                       std::string_view help) = 0;
  // A mapping of texts, such as labels.
  virtual void Texts(std::string_view key, std::map<std::string, std::string>& value,
                     std::string_view help) = 0;
  // A list of mappings with the fields that `item` visits. `resize` gives the list that many items,
  // each with its defaults; it has `size` now.
  virtual void List(std::string_view key, size_t size, FunctionRef<void(size_t)> resize,
                    FunctionRef<void(size_t)> item, std::string_view help) = 0;
  // Declares that the next field, `key`, was called `old_key` in the last minor version. The old
  // key is still read, with a warning. A file with both keys is an error.
  virtual void Renamed(std::string_view old_key, std::string_view key) = 0;
  // The key was read by older versions and has no effect now.
  virtual void Retired(std::string_view key, std::string_view why) = 0;
};

}  // namespace nos
