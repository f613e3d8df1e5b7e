// A plain text table for terminals: left-aligned columns, two blanks between them, no borders, as
// kubectl prints. Rows can be truncated to the width of a terminal.
//
//   TextTable table({"NAME", "GPU"});
//   table.AddRow({"gpu-1", "0"});
//   std::cout << table.ToString();
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nos {

inline constexpr size_t kUncut = static_cast<size_t>(-1);  // wider than any line

class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) : rows_{std::move(header)} {}
  // Control characters are shown as '?'. REQUIRES: as many cells as the header has.
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // Lines end in '\n' and are at most `width` characters long; the last column is truncated first.
  std::string ToString(size_t width = kUncut) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// The text with control characters replaced by '?': names of objects must not steer a terminal.
std::string Printable(std::string text);
// The number of characters a UTF-8 text takes on a terminal (every code point counts as one).
size_t DisplayWidth(std::string_view text);
// At most `width` characters of the text, with "…" at the end if it was truncated.
std::string Truncate(std::string_view text, size_t width);

}  // namespace nos
