// Decimal numbers with six digits after the point, as integers of millionths: for money.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nos {

// A decimal number that is not negative and has at most six digits after the point: "2.5" is
// 2,500,000. Nullopt for other texts and on overflow.
std::optional<int64_t> ParseMillionths(std::string_view text);
// The number without trailing zeros: "2.5", "-0.000001", "3".
std::string MillionthsText(int64_t millionths);

}  // namespace nos
