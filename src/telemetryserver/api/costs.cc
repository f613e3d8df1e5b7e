// The route about costs.
#include <fmt/format.h>

#include "base/text.h"
#include "telemetryserver/api.h"
#include "telemetryserver/api/cost_rows.h"
#include "telemetryserver/cost.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kFarAway = 9'999'999'999'999;
constexpr telemetry::Millis kMaxTime = 400 * kDay;
constexpr int64_t kMaxRows = 10'000;

}  // namespace

// Error: kInvalid.
Result<bool> WantsCsv(const ApiCall& call) {
  const std::string format = call.Parameter("format");
  if (format == "csv" || format == "json") return format == "csv";
  if (!format.empty()) return Invalid("format is none of json, csv");
  const std::string_view accepted = call.request.Header("accept");
  return accepted.substr(0, accepted.find_first_of(",;")) == "text/csv";
}

Api::Reply Api::Cost(const ApiCall& call) {
  if (parts_.costs == nullptr) return NotFound("this server computes no costs");
  NOS_ASSIGN(const bool csv, WantsCsv(call));
  const telemetry::Millis now = parts_.recorder.Now();
  NOS_ASSIGN(const telemetry::Millis to, call.Number("to", now, 1, kFarAway));
  NOS_ASSIGN(const telemetry::Millis from,
             call.Number("from", std::max<telemetry::Millis>(0, to - kDay), 0, kFarAway));
  NOS_ASSIGN(const int64_t most, call.Number("limit", 1000, 1, kMaxRows));
  const std::string word = call.Parameter("by");
  NOS_ASSIGN(const CostBy by, ParseCostBy(word.empty() ? kCostBy.front() : word));
  if (from >= to) return Invalid("from lies after to");
  if (to - from > kMaxTime) return Invalid("at most 400 days at once");
  const auto turn = pasts_.Begin();
  if (turn == nullptr) {
    return Status(Code::kUnavailable,
                  "others look at past moments, too: come again in some seconds");
  }
  NOS_ASSIGN(const Ledger ledger, parts_.costs->Between(call.cluster, from, to));
  const Scope scope = call.scope();
  const CostTable table = CostTableOf(
      ledger, by, {scope, !call.Parameter("namespace").empty(), static_cast<size_t>(most)});
  const PriceList& prices = parts_.costs->prices();
  if (csv) return CostCsv(table, prices.currency);
  JsonText json;
  json.Begin('{').Key("cluster").Text(call.cluster).Key("from").Number(from);
  json.Key("to").Number(std::min(to, now)).Key("by").Text(kCostBy.at(static_cast<size_t>(by)));
  json.Key("configured").Bool(!prices.rules.empty()).Key("currency").Text(prices.currency);
  json.Key("note").Text(prices.note);
  AppendCosts(table, json);
  json.End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetryserver
