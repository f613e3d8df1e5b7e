// The routes about costs.
#include <fmt/format.h>

#include <vector>

#include "base/text.h"
#include "telemetryserver/api.h"
#include "telemetryserver/api/cost_rows.h"
#include "telemetryserver/api/months.h"
#include "telemetryserver/cost.h"
#include "telemetryserver/cost/forecast.h"

namespace nos::telemetryserver {
namespace {

constexpr telemetry::Millis kFarAway = 9'999'999'999'999;
constexpr telemetry::Millis kMaxTime = 400 * kDay;
constexpr int64_t kMaxRows = 10'000;
constexpr const char* kBusy = "too many requests for past moments: retry in some seconds";

Result<CostTable> TableOf(Costs& costs, const ApiCall& call, const TimeSpan& span, CostBy by,
                          const CostView& view) {
  if (by != CostBy::kEachDay && by != CostBy::kEachHour) {
    NOS_ASSIGN(const Ledger ledger, costs.Between(call.cluster, span.from, span.to));
    return CostTableOf(ledger, by, view);
  }
  CostTable table;
  NOS_RETURN_IF_ERROR(costs.EachPeriod(call.cluster, span.from, span.to,
                                       {by == CostBy::kEachDay ? kDay : kHour},
                                       [&](telemetry::Millis begin, const Ledger& ledger) {
                                         AddPeriod(begin, ledger, by, view, table);
                                       }));
  return table;
}

// Costs of the periods of 24 hours before the last full hour, the latest last.
Result<std::vector<Micros>> DaysBefore(Costs& costs, const ApiCall& call, telemetry::Millis begin,
                                       telemetry::Millis now, const CostView& view) {
  const telemetry::Millis end = FloorTo(now, kHour);
  const telemetry::Millis whole = std::max<telemetry::Millis>(0, end - begin) / kDay;
  const auto days = std::min<telemetry::Millis>(whole, kMaxForecastDays);
  std::vector<Micros> found;
  // Fewer days make no forecast.
  if (days < static_cast<telemetry::Millis>(kMinForecastDays)) return found;
  NOS_RETURN_IF_ERROR(costs.EachPeriod(
      call.cluster, end - days * kDay, end, {kDay, end % kDay},
      [&](telemetry::Millis, const Ledger& ledger) {
        found.push_back(CostTableOf(ledger, CostBy::kCategory, view).total.sums.cost);
      }));
  return found;
}

void AppendForecast(const CostForecast& forecast, JsonText& json) {
  json.Key("forecast").Begin('{').Key("cost").Text(Exact(forecast.cost));
  json.Key("low").Text(Exact(forecast.low)).Key("high").Text(Exact(forecast.high));
  json.Key("confidence").Number(kForecastConfidence).Key("per_day").Text(Exact(forecast.per_day));
  json.Key("days").Number(static_cast<int64_t>(forecast.days)).End('}');
}

// Reason why there is no forecast.
std::string WhyNoForecast(const TimeSpan& month, const CostRow& total, telemetry::Millis begin,
                          telemetry::Millis now) {
  if (month.to <= now) return "the month has ended";
  if (IsUnpriced(total)) return "no GPU has a price";
  const telemetry::Millis known = std::max<telemetry::Millis>(0, FloorTo(now, kHour) - begin);
  const telemetry::Millis tenths = known * 10 / kDay;
  const std::string length = known < kDay ? fmt::format("{} h", known / kHour)
                                          : fmt::format("{}.{} days", tenths / 10, tenths % 10);
  return fmt::format("history has {}, and a forecast needs {} days", length, kMinForecastDays);
}

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
  NOS_ASSIGN(const auto sort, ParseCostSort(call.Parameter("sort")));
  if (from >= to) return Invalid("from lies after to");
  if (to - from > kMaxTime) return Invalid("at most 400 days at once");
  const auto turn = pasts_.Begin();
  if (turn == nullptr) return Status(Code::kUnavailable, kBusy);
  const Scope scope = call.scope();
  const CostView view{scope, !call.Parameter("namespace").empty(), static_cast<size_t>(most), sort};
  NOS_ASSIGN(const CostTable table, TableOf(*parts_.costs, call, {from, to}, by, view));
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

Api::Reply Api::CostForecast(const ApiCall& call) {
  if (parts_.costs == nullptr) return NotFound("this server computes no costs");
  Costs& costs = *parts_.costs;
  const telemetry::Millis now = parts_.recorder.Now();
  NOS_ASSIGN(const Month month, MonthOf(call.Parameter("month"), now));
  if (month.span.from > now) return Invalid("that month has not begun");
  const auto turn = pasts_.Begin();
  if (turn == nullptr) return Status(Code::kUnavailable, kBusy);
  NOS_ASSIGN(const auto first, costs.Begin(call.cluster));
  const telemetry::Millis begin = first.value_or(now);
  const telemetry::Millis to = std::min(month.span.to, now);
  const Scope scope = call.scope();
  const CostView view{scope, !call.Parameter("namespace").empty()};
  NOS_ASSIGN(const CostTable so_far,
             TableOf(costs, call, {month.span.from, to}, CostBy::kCategory, view));
  const CostRow& total = so_far.total;
  std::optional<nos::telemetryserver::CostForecast> forecast;
  if (month.span.to > now && !IsUnpriced(total)) {
    NOS_ASSIGN(const std::vector<Micros> days, DaysBefore(costs, call, begin, now, view));
    forecast = ForecastOf(total.sums.cost, days, month.span.to - now);
  }
  const PriceList& prices = costs.prices();
  JsonText json;
  json.Begin('{').Key("cluster").Text(call.cluster).Key("month").Text(month.name);
  json.Key("from").Number(month.span.from).Key("to").Number(month.span.to).Key("now").Number(now);
  json.Key("counted_from").Number(std::clamp(begin, month.span.from, to));
  json.Key("configured").Bool(!prices.rules.empty()).Key("currency").Text(prices.currency);
  json.Key("note").Text(prices.note).Key("so_far").Begin('{');
  AppendAmounts(total, json);
  json.End('}');
  if (forecast) {
    AppendForecast(*forecast, json);
  } else {
    json.Key("forecast").Null();
  }
  json.Key("why").Text(forecast ? "" : WhyNoForecast(month.span, total, begin, now)).End('}');
  return std::move(json.text());
}

}  // namespace nos::telemetryserver
