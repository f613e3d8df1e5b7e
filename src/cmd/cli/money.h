// Amounts of money and GPU hours in answers of a telemetry server, as text. Pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"

namespace nos::cmd {

// Uses of a GPU, which divide its cost; in the order of reports.
inline constexpr std::array<const char*, 8> kCostCategories = {
    "used", "idle", "unknown", "free", "unpartitioned", "fragmented", "stranded", "not_reported"};

// In millionths; nullopt for an unknown amount.
std::optional<int64_t> AmountOf(const Json* amount);
// "1,234". REQUIRES: not negative.
std::string Grouped(int64_t number);
// "1,234.50"; amounts below ten have four digits after the point. "-" for an unknown amount.
std::string MoneyText(const Json* amount);
// "1,234.50" for an amount of GPU hours; "-" for an unknown one.
std::string HoursText(const Json* amount);

// A cost and its parts in whole cents: the parts add up to the cost.
struct CentParts {
  std::string cost;                // "1,234.50"
  std::vector<std::string> parts;  // "617.25 used"; parts of less than a cent may be missing
};
// `amounts`: a row or the total in an answer of GET cost. Nullopt if its cost is unknown.
std::optional<CentParts> CentPartsOf(const Json& amounts);

}  // namespace nos::cmd
