// Small text functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nos {

// Splits at every separator; "a,,b" gives three parts, "" gives one empty part.
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string_view Trim(std::string_view text);
std::string ToLower(std::string_view text);
// At most `most` bytes (more than three), for texts from untrusted sources: "nvidia.com/m...".
// Never splits a UTF-8 character.
std::string Shortened(std::string_view text, size_t most);
// Texts in the order of a reader: digits are compared as numbers. Negative: a comes first.
int CompareNaturally(std::string_view a, std::string_view b);
// A strict order by it. Texts that it takes for equal ("a2", "a02") are in that of their
// characters.
struct NaturallyLess {
  bool operator()(std::string_view a, std::string_view b) const;
};
// A whole decimal integer, or nothing: no sign but '-', no spaces, no overflow.
std::optional<int64_t> ParseInt(std::string_view text);
std::optional<double> ParseDouble(std::string_view text);

}  // namespace nos
