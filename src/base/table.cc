#include "base/table.h"

#include <algorithm>
#include <utility>

namespace nos {
namespace {

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// Characters that change the writing direction of their neighbours, in UTF-8: U+061C, U+200E,
// U+200F, U+202A to U+202E, U+2066 to U+2069 (Unicode Standard Annex 9, 2).
size_t DirectionAt(std::string_view text) {
  if (text.starts_with("\xd8\x9c")) return 2;
  if (text.size() < 3 || text[0] != '\xe2') return 0;
  const auto second = static_cast<unsigned char>(text[1]),
             third = static_cast<unsigned char>(text[2]);
  const bool turns =
      (second == 0x80 && ((third >= 0x8e && third <= 0x8f) || (third >= 0xaa && third <= 0xae))) ||
      (second == 0x81 && third >= 0xa6 && third <= 0xa9);
  return turns ? 3 : 0;
}

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !Continues(c); }));
}

std::string Truncate(std::string_view text, size_t width) {
  if (DisplayWidth(text) <= width) return std::string(text);
  if (width == 0) return "";
  size_t end = 0;
  for (size_t taken = 0; taken + 1 < width; ++taken) {
    ++end;
    while (end < text.size() && Continues(text[end])) ++end;
  }
  return std::string(text.substr(0, end)) + "…";
}

// U+0080 to U+009F are control characters too (ECMA-48 C1): in UTF-8 0xc2 and a byte up to 0x9f.
std::string Printable(std::string text) {
  std::replace_if(text.begin(), text.end(), IsControl, '?');
  for (size_t at = text.find_first_of("\xc2\xd8\xe2"); at != std::string::npos;
       at = text.find_first_of("\xc2\xd8\xe2", at + 1)) {
    const bool control = text[at] == '\xc2' && at + 1 < text.size() && Continues(text[at + 1]) &&
                         text[at + 1] < '\xa0';
    const size_t bytes = control ? 2 : DirectionAt(std::string_view(text).substr(at));
    if (bytes == 0) continue;
    text[at] = '?';
    text.erase(at + 1, bytes - 1);
  }
  return text;
}

void TextTable::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = Printable(std::move(cell));
  rows_.push_back(std::move(cells));
}

std::string TextTable::ToString(size_t width) const {
  std::vector<size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (size_t i = 0; i < widths.size(); ++i)
      widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (size_t i = 0; i < widths.size(); ++i) {
      line += row[i];
      if (i + 1 < widths.size()) line.append(widths[i] - DisplayWidth(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += Truncate(line, width) + "\n";
  }
  return out;
}

}  // namespace nos
