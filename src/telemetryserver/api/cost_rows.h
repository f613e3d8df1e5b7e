// Costs as rows of an answer: grouped, limited to the namespaces of a reader, as JSON and CSV.
//
//   NOS_ASSIGN(const CostBy by, ParseCostBy("quota"));
//   const CostTable table = CostTableOf(ledger, by, {scope, false, 1000});
//   table.total == the sum of the rows
//
// Pure. Internal to this library.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json_text.h"
#include "telemetryserver/cost/ledger.h"
#include "telemetryserver/views.h"

namespace nos::telemetryserver {

// kWorkload: the pod's job if it has one, else the pod.
// kEachDay, kEachHour: by time, in its order.
enum class CostBy {
  kNamespace,
  kQuota,
  kJob,
  kPod,
  kModel,
  kCategory,
  kPool,
  kWorkload,
  kEachDay,
  kEachHour
};
inline constexpr std::array<std::string_view, 10> kCostBy = {
    "namespace", "quota", "job", "pod", "model", "category", "pool", "workload", "day", "hour"};
// Error: kInvalid, names the words.
Result<CostBy> ParseCostBy(std::string_view word);

// Kinds of rows besides those of kCostBy: GPUs that no pod has; pods without a quota or a job;
// everything that the reader may not see; rows beyond the limit.
inline constexpr std::string_view kUnallocated = "unallocated", kNone = "none", kOthers = "others",
                                  kRest = "rest", kTotal = "total";

struct CostRow {
  std::string_view kind;
  std::string ns{}, name{};  // "": it has none
  CostSums sums{};
  Micros borrowed = 0;  // cost of pods over their quotas
  std::array<Micros, kCategories.size()> categories{};

  void Add(const CostRow& other);
};

struct CostTable {
  std::vector<CostRow> rows;  // the most expensive one first
  CostRow total{kTotal};
};

struct CostView {
  const Scope& scope;
  bool only_scope = false;  // leave out what is beyond it, instead of one sum
  size_t most = 1000;
  // Order of the rows: by the cost of this category, the largest first; nullopt: by all cost.
  std::optional<Category> sort{};
};
// Error: kInvalid, names the words: "cost" and the categories.
Result<std::optional<Category>> ParseCostSort(std::string_view word);

// REQUIRES: not by time.
CostTable CostTableOf(const Ledger& ledger, CostBy by, const CostView& view);
// Appends the row of a period, named by its beginning in UTC: "2026-11-03" for a day,
// "2026-11-03T14:00Z" for an hour. REQUIRES: by time.
void AddPeriod(telemetry::Millis begin, const Ledger& ledger, CostBy by, const CostView& view,
               CostTable& table);

// Six digits after the point. REQUIRES: not negative.
std::string Exact(Micros amount);
// No GPU of it has a price, so its cost is not known.
bool IsUnpriced(const CostRow& row);

// Cost, times and categories as members.
void AppendAmounts(const CostRow& row, JsonText& json);
// The rows as members "rows" and "total".
void AppendCosts(const CostTable& table, JsonText& json);
// With a header, and the total last.
std::string CostCsv(const CostTable& table, std::string_view currency);

}  // namespace nos::telemetryserver
