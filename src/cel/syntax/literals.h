// The values of literals.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace nos::cel {

// The text of a string or bytes token, without quotes and escapes. Empty if an escape names no
// character. `bytes` is without its prefix b.
std::optional<std::string> Unquote(std::string_view token, bool bytes);

// "-12" or "0x1f"; none beyond 64 bits.
std::optional<int64_t> ParseIntLiteral(std::string_view digits, bool negative);
std::optional<uint64_t> ParseUintLiteral(std::string_view digits);
// Reads numbers like Go: also "inf", "0x1p-2" and "1_000". Nullopt if the text is no number or
// the number is too large.
std::optional<double> ParseDouble(std::string_view text);

}  // namespace nos::cel
