#include "telemetryserver/api/cost_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/clock.h"
#include "base/function_ref.h"

namespace nos::telemetryserver {
namespace {

constexpr std::string_view NameOf(CostBy by) { return kCostBy.at(static_cast<size_t>(by)); }

CostRow RowOfPod(const CostKey& key, CostBy by) {
  const std::string_view kind = NameOf(by);
  switch (by) {
    case CostBy::kNamespace:
      return {kind, key.ns, key.ns};
    case CostBy::kQuota:
      return key.quota.empty() ? CostRow{kNone} : CostRow{kind, "", key.quota};
    case CostBy::kJob:
      return key.job.empty() ? CostRow{kNone} : CostRow{kind, key.ns, key.job};
    case CostBy::kWorkload:
      return key.job.empty() ? CostRow{NameOf(CostBy::kPod), key.ns, key.pod}
                             : CostRow{NameOf(CostBy::kJob), key.ns, key.job};
    default:
      return {kind, key.ns, key.pod};
  }
}

CostRow RowOf(const CostKey& key, CostBy by) {
  if (by == CostBy::kModel) return {NameOf(by), "", key.model};
  if (by == CostBy::kCategory) {
    return {NameOf(by), "", std::string(NameOf(key.category))};
  }
  if (by == CostBy::kPool) {
    return key.pool.empty() ? CostRow{kNone} : CostRow{NameOf(by), "", key.pool};
  }
  return key.pod.empty() ? CostRow{kUnallocated} : RowOfPod(key, by);
}

// Order of rows: the most expensive one first.
auto OrderOf(const CostRow& row, const std::optional<Category>& sort) {
  const Micros first = sort ? row.categories.at(static_cast<size_t>(*sort)) : row.sums.cost;
  return std::tuple(-first, -row.sums.cost, -row.sums.gpu_time, row.kind, std::string_view(row.ns),
                    std::string_view(row.name));
}

// Adds the sums to the row that `row_of` chooses. Only the sum of others is shown.
void AddRows(const Ledger& ledger, const CostView& view,
             FunctionRef<CostRow(const CostKey& key)> row_of,
             FunctionRef<void(CostRow&& row)> add) {
  for (const auto& [key, sums] : ledger.rows()) {
    const bool seen = view.scope.all() || (!key.pod.empty() && view.scope.Has(key.ns));
    if (!seen && view.only_scope) continue;
    CostRow row = seen ? row_of(key) : CostRow{kOthers};
    row.sums = sums;
    if (seen) {
      row.borrowed = key.borrowed ? sums.cost : 0;
      row.categories.at(static_cast<size_t>(key.category)) = sums.cost;
    }
    add(std::move(row));
  }
}

// RFC 4180. A spreadsheet would compute a cell that begins like a formula.
std::string Cell(std::string_view text) {
  const bool formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  std::string cell = formula ? "'" : "";
  cell += text;
  if (cell.find_first_of(",\"\r\n") == std::string::npos) return cell;
  std::string quoted = "\"";
  for (const char c : cell) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string CsvLine(const CostRow& row, std::string_view currency) {
  std::string line =
      fmt::format("{},{},{},{},{},{},{},{}", row.kind, Cell(row.ns), Cell(row.name),
                  IsUnpriced(row) ? "" : Exact(row.sums.cost), currency, Exact(row.sums.gpu_time),
                  Exact(row.sums.unpriced), Exact(row.borrowed));
  for (const Micros amount : row.categories) line += "," + Exact(amount);
  return line + "\r\n";
}

}  // namespace

std::string Exact(Micros amount) {
  return fmt::format("{}.{:06}", amount / kMicrosPerUnit, amount % kMicrosPerUnit);
}

bool IsUnpriced(const CostRow& row) {
  return row.sums.gpu_time > 0 && row.sums.unpriced == row.sums.gpu_time;
}

void AppendAmounts(const CostRow& row, JsonText& json) {
  json.Key("cost");
  IsUnpriced(row) ? json.Null() : json.Text(Exact(row.sums.cost));
  json.Key("gpu_hours").Text(Exact(row.sums.gpu_time));
  json.Key("unpriced_gpu_hours").Text(Exact(row.sums.unpriced));
  json.Key("borrowed").Text(Exact(row.borrowed)).Key("categories").Begin('{');
  for (size_t i = 0; i < kCategories.size(); ++i) {
    json.Key(kCategories.at(i)).Text(Exact(row.categories.at(i)));
  }
  json.End('}');
}

Result<CostBy> ParseCostBy(std::string_view word) {
  const auto found = std::ranges::find(kCostBy, word);
  if (found != kCostBy.end()) return static_cast<CostBy>(found - kCostBy.begin());
  return Invalid(fmt::format("by is none of {}", fmt::join(kCostBy, ", ")));
}

Result<std::optional<Category>> ParseCostSort(std::string_view word) {
  if (word.empty() || word == "cost") return std::optional<Category>();
  const auto found = std::ranges::find(kCategories, word);
  if (found != kCategories.end()) {
    return std::optional(static_cast<Category>(found - kCategories.begin()));
  }
  return Invalid(fmt::format("sort is none of cost, {}", fmt::join(kCategories, ", ")));
}

void CostRow::Add(const CostRow& other) {
  for (Micros CostSums::* field : {&CostSums::cost, &CostSums::gpu_time, &CostSums::unpriced}) {
    sums.*field += other.sums.*field;
  }
  borrowed += other.borrowed;
  for (size_t i = 0; i < categories.size(); ++i) categories.at(i) += other.categories.at(i);
}

CostTable CostTableOf(const Ledger& ledger, CostBy by, const CostView& view) {
  using Identity = std::tuple<std::string_view, std::string, std::string>;
  std::map<Identity, CostRow> rows;
  CostTable table;
  AddRows(
      ledger, view, [&](const CostKey& key) { return RowOf(key, by); },
      [&](CostRow&& row) {
        table.total.Add(row);
        const auto [known, added] = rows.try_emplace({row.kind, row.ns, row.name}, row);
        if (!added) known->second.Add(row);
      });
  for (auto& [identity, row] : rows) table.rows.push_back(std::move(row));
  std::ranges::sort(table.rows, {}, [&](const CostRow& row) { return OrderOf(row, view.sort); });
  if (table.rows.size() <= view.most) return table;
  CostRow rest{kRest};
  for (size_t i = view.most; i < table.rows.size(); ++i) rest.Add(table.rows[i]);
  table.rows.resize(view.most);
  table.rows.push_back(std::move(rest));
  return table;
}

void AddPeriod(telemetry::Millis begin, const Ledger& ledger, CostBy by, const CostView& view,
               CostTable& table) {
  const std::string at = FormatTime(Time(std::chrono::milliseconds(begin)));
  CostRow sum{NameOf(by), "",
              by == CostBy::kEachDay ? at.substr(0, 10) : at.substr(0, 13) + ":00Z"};
  AddRows(
      ledger, view, [](const CostKey&) { return CostRow{}; }, [&](CostRow&& row) { sum.Add(row); });
  table.total.Add(sum);
  // Rows beyond the limit become one.
  if (table.rows.size() > view.most) {
    table.rows.back().Add(sum);
  } else if (table.rows.size() == view.most) {
    CostRow rest{kRest};
    rest.Add(sum);
    table.rows.push_back(std::move(rest));
  } else {
    table.rows.push_back(std::move(sum));
  }
}

void AppendCosts(const CostTable& table, JsonText& json) {
  json.Key("rows").Begin('[');
  for (const CostRow& row : table.rows) {
    json.Begin('{').Key("kind").Text(row.kind).Key("namespace").Text(row.ns);
    json.Key("name").Text(row.name);
    AppendAmounts(row, json);
    json.End('}');
  }
  json.End(']').Key("total").Begin('{');
  AppendAmounts(table.total, json);
  json.End('}');
}

std::string CostCsv(const CostTable& table, std::string_view currency) {
  std::string text = "kind,namespace,name,cost,currency,gpu_hours,unpriced_gpu_hours,borrowed";
  for (const std::string_view category : kCategories) text.append(",").append(category);
  text += "\r\n";
  for (const CostRow& row : table.rows) text += CsvLine(row, currency);
  return text + CsvLine(table.total, currency);
}

}  // namespace nos::telemetryserver
