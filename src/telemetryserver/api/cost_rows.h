// Costs as rows of an answer: grouped, limited to the namespaces of a reader, as JSON and CSV.
//
//   NOS_ASSIGN(const CostBy by, ParseCostBy("quota"));
//   const CostTable table = CostTableOf(ledger, by, {scope, false, 1000});
//   table.total == the sum of the rows
//
// Pure. Internal to this library.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "codec/json_text.h"
#include "telemetryserver/cost/ledger.h"
#include "telemetryserver/views.h"

namespace nos::telemetryserver {

enum class CostBy { kNamespace, kQuota, kJob, kPod, kModel, kCategory };
inline constexpr std::array<std::string_view, 6> kCostBy = {"namespace", "quota", "job",
                                                            "pod",       "model", "category"};
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
};
CostTable CostTableOf(const Ledger& ledger, CostBy by, const CostView& view);

// The rows as members "rows" and "total".
void AppendCosts(const CostTable& table, JsonText& json);
// With a header, and the total last.
std::string CostCsv(const CostTable& table, std::string_view currency);

}  // namespace nos::telemetryserver
