#include "cmd/cli/money.h"

#include <fmt/format.h>

#include <algorithm>

#include "codec/millionths.h"

namespace nos::cmd {
namespace {

constexpr int64_t kMillion = 1'000'000;
constexpr int64_t kCent = 10'000;

std::string CentsText(int64_t cents) {
  return fmt::format("{}.{:02}", Grouped(cents / 100), cents % 100);
}

}  // namespace

std::optional<int64_t> AmountOf(const Json* amount) {
  if (amount == nullptr || !amount->is_string()) return std::nullopt;
  return ParseMillionths(View(amount->get_string()));
}

std::string Grouped(int64_t number) {
  std::string text = fmt::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<size_t>(at), ",");
  }
  return text;
}

std::string MoneyText(const Json* amount) {
  const auto micros = AmountOf(amount);
  if (!micros) return "-";
  const int64_t digit = *micros < 10 * kMillion ? 100 : kCent;
  const int64_t rounded = (*micros + digit / 2) / digit * digit;
  const int64_t rest = rounded % kMillion / digit;
  return digit == 100 ? fmt::format("{}.{:04}", Grouped(rounded / kMillion), rest)
                      : fmt::format("{}.{:02}", Grouped(rounded / kMillion), rest);
}

std::string HoursText(const Json* amount) {
  const auto hours = AmountOf(amount);
  return hours ? fmt::format("{}.{:02}", Grouped(*hours / kMillion), *hours % kMillion / kCent)
               : "-";
}

std::optional<CentParts> CentPartsOf(const Json& amounts) {
  const auto cost = AmountOf(Find(amounts, "cost"));
  if (!cost) return std::nullopt;
  CentParts found{CentsText((*cost + kCent / 2) / kCent), {}};
  int64_t sum = 0, shown = 0;
  // Each part is rounded together with those before it.
  const auto add = [&](int64_t part, std::string name) {
    sum += part;
    const int64_t cents = (sum + kCent / 2) / kCent - shown;
    if (cents <= 0) return;
    shown += cents;
    std::ranges::replace(name, '_', ' ');
    found.parts.push_back(fmt::format("{} {}", CentsText(cents), name));
  };
  for (const char* category : kCostCategories) {
    add(AmountOf(Find(amounts, "categories", category)).value_or(0), category);
  }
  add(*cost - sum, "not visible to you");
  return found;
}

}  // namespace nos::cmd
