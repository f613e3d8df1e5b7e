#include "telemetryserver/api/cost_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace nos::telemetryserver {
namespace {

// Six digits after the point. REQUIRES: not negative.
std::string Exact(Micros amount) {
  return fmt::format("{}.{:06}", amount / kMicrosPerUnit, amount % kMicrosPerUnit);
}

// No GPU of it has a price, so its cost is not known.
bool IsUnpriced(const CostRow& row) {
  return row.sums.gpu_time > 0 && row.sums.unpriced == row.sums.gpu_time;
}

CostRow RowOfPod(const CostKey& key, CostBy by) {
  const std::string_view kind = kCostBy.at(static_cast<size_t>(by));
  switch (by) {
    case CostBy::kNamespace:
      return {kind, key.ns, key.ns};
    case CostBy::kQuota:
      return key.quota.empty() ? CostRow{kNone} : CostRow{kind, "", key.quota};
    case CostBy::kJob:
      return key.job.empty() ? CostRow{kNone} : CostRow{kind, key.ns, key.job};
    default:
      return {kind, key.ns, key.pod};
  }
}

CostRow RowOf(const CostKey& key, CostBy by) {
  if (by == CostBy::kModel) return {kCostBy.at(static_cast<size_t>(by)), "", key.model};
  if (by == CostBy::kCategory) {
    return {kCostBy.at(static_cast<size_t>(by)), "", std::string(NameOf(key.category))};
  }
  return key.pod.empty() ? CostRow{kUnallocated} : RowOfPod(key, by);
}

bool IsMoreExpensive(const CostRow& a, const CostRow& b) {
  const auto order = [](const CostRow& row) {
    return std::tuple(-row.sums.cost, -row.sums.gpu_time, row.kind, std::string_view(row.ns),
                      std::string_view(row.name));
  };
  return order(a) < order(b);
}

void Amounts(const CostRow& row, JsonText& json) {
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

Result<CostBy> ParseCostBy(std::string_view word) {
  const auto found = std::ranges::find(kCostBy, word);
  if (found != kCostBy.end()) return static_cast<CostBy>(found - kCostBy.begin());
  return Invalid(fmt::format("by is none of {}", fmt::join(kCostBy, ", ")));
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
  for (const auto& [key, sums] : ledger.rows()) {
    const bool seen = view.scope.all() || (!key.pod.empty() && view.scope.Has(key.ns));
    if (!seen && view.only_scope) continue;
    CostRow row = seen ? RowOf(key, by) : CostRow{kOthers};
    row.sums = sums;
    row.borrowed = key.borrowed ? sums.cost : 0;
    // Only the sum of others is shown.
    if (seen) row.categories.at(static_cast<size_t>(key.category)) = sums.cost;
    if (!seen) row.borrowed = 0;
    table.total.Add(row);
    const auto [known, added] = rows.try_emplace({row.kind, row.ns, row.name}, row);
    if (!added) known->second.Add(row);
  }
  for (auto& [identity, row] : rows) table.rows.push_back(std::move(row));
  std::ranges::sort(table.rows, IsMoreExpensive);
  if (table.rows.size() <= view.most) return table;
  CostRow rest{kRest};
  for (size_t i = view.most; i < table.rows.size(); ++i) rest.Add(table.rows[i]);
  table.rows.resize(view.most);
  table.rows.push_back(std::move(rest));
  return table;
}

void AppendCosts(const CostTable& table, JsonText& json) {
  json.Key("rows").Begin('[');
  for (const CostRow& row : table.rows) {
    json.Begin('{').Key("kind").Text(row.kind).Key("namespace").Text(row.ns);
    json.Key("name").Text(row.name);
    Amounts(row, json);
    json.End('}');
  }
  json.End(']').Key("total").Begin('{');
  Amounts(table.total, json);
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
