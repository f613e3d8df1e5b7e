#include "cmd/cost/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "cmd/cli/money.h"

namespace nos::cmd {
namespace {

constexpr std::array<const char*, 3> kNarrow = {"used", "idle", "unknown"};

std::string ShareText(const Json* part, const Json* all) {
  const auto amount = AmountOf(part), total = AmountOf(all);
  if (!amount || !total || *total == 0) return "-";
  return fmt::format("{:.0f}%", 100 * static_cast<double>(*amount) / static_cast<double>(*total));
}

bool HasNamespace(std::string_view by) { return by == "job" || by == "pod" || by == "workload"; }

std::string NameOf(const Json& row) {
  const std::string_view kind = FindString(row, "kind");
  if (kind == "unallocated") return "(no pod)";
  if (kind == "none") return "(none)";
  if (kind == "others") return "(not visible to you)";
  if (kind == "rest") return "(further rows)";
  return std::string(FindString(row, "name"));
}

void AddAmounts(const Json& row, const Json* all, bool wide, std::vector<std::string>& cells) {
  cells.push_back(MoneyText(Find(row, "cost")));
  cells.push_back(ShareText(Find(row, "cost"), all));
  cells.push_back(HoursText(Find(row, "gpu_hours")));
  const bool parts = FindString(row, "kind") != "others";  // only its sum is known
  const auto add = [&](const char* category) {
    cells.push_back(parts ? MoneyText(Find(row, "categories", category)) : "-");
  };
  wide ? std::ranges::for_each(kCostCategories, add) : std::ranges::for_each(kNarrow, add);
  cells.push_back(parts ? MoneyText(Find(row, "borrowed")) : "-");
}

std::vector<std::string> HeaderOf(const Json& answer, bool wide) {
  const std::string_view by = FindString(answer, "by");
  const auto upper = [](std::string_view word) {
    std::string text(word);
    std::ranges::transform(text, text.begin(), [](char c) {
      return c == '_' ? '-' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
    });
    return text;
  };
  std::vector<std::string> header;
  if (HasNamespace(by)) header.emplace_back("NAMESPACE");
  header.push_back(upper(by));
  header.push_back(fmt::format("COST ({})", FindString(answer, "currency")));
  header.insert(header.end(), {"SHARE", "GPU HOURS"});
  const auto add = [&](const char* category) { header.push_back(upper(category)); };
  wide ? std::ranges::for_each(kCostCategories, add) : std::ranges::for_each(kNarrow, add);
  header.emplace_back("BORROWED");
  return header;
}

}  // namespace

TextTable CostTableOf(const Json& answer, bool wide) {
  TextTable table(HeaderOf(answer, wide));
  const bool namespaces = HasNamespace(FindString(answer, "by"));
  const Json* rows = Find(answer, "rows");
  const Json* all = Find(answer, "total", "cost");
  for (size_t i = 0; rows != nullptr && rows->is_array() && i < rows->get_array().size(); ++i) {
    const Json& row = rows->get_array()[i];
    std::vector<std::string> cells;
    if (namespaces) cells.emplace_back(FindString(row, "namespace"));
    cells.push_back(Truncate(NameOf(row), 40));
    AddAmounts(row, all, wide, cells);
    table.AddRow(std::move(cells));
  }
  std::vector<std::string> cells;
  if (namespaces) cells.emplace_back();
  cells.emplace_back("TOTAL");
  AddAmounts(*Find(answer, "total"), all, wide, cells);
  table.AddRow(std::move(cells));
  return table;
}

Result<std::string> MonthBefore(std::string_view month) {
  const auto year = month.size() == 7 ? ParseInt(month.substr(0, 4)) : std::nullopt;
  const auto number = month.size() == 7 ? ParseInt(month.substr(5)) : std::nullopt;
  if (!year || !number) return Invalid("the server is not a nos telemetry server of this version");
  return *number > 1 ? fmt::format("{:04}-{:02}", *year, *number - 1)
                     : fmt::format("{:04}-12", *year - 1);
}

std::string ForecastText(const Json& answer) {
  if (answer.is_null()) return "";
  const std::string_view month = FindString(answer, "month");
  const Json* forecast = Find(answer, "forecast");
  if (forecast == nullptr || !forecast->is_object()) {
    const std::string_view why = FindString(answer, "why");
    return why == "the month has ended" ? "" : fmt::format("no forecast of {}: {}\n", month, why);
  }
  const Json* days = Find(*forecast, "days");
  return fmt::format(
      "forecast of {}: {} {}, 8 of 10 times from {} to {}: {} so far, and {} a day, the mean of "
      "the "
      "last {} days\n",
      month, MoneyText(Find(*forecast, "cost")), FindString(answer, "currency"),
      MoneyText(Find(*forecast, "low")), MoneyText(Find(*forecast, "high")),
      MoneyText(Find(answer, "so_far", "cost")), MoneyText(Find(*forecast, "per_day")),
      days != nullptr && days->is_int64() ? days->get_int64() : 0);
}

std::string CostNotes(const Json& answer) {
  std::string notes;
  if (AmountOf(Find(answer, "total", "unpriced_gpu_hours")).value_or(0) > 0) {
    notes += fmt::format(
        "{} GPU hours have no price and are not in the cost: no rule of cost.prices matches their "
        "GPUs\n",
        HoursText(Find(answer, "total", "unpriced_gpu_hours")));
  }
  if (const std::string_view note = FindString(answer, "note"); !note.empty()) {
    notes += Printable(std::string(note)) + "\n";
  }
  return notes;
}

}  // namespace nos::cmd
