// nos cost: what the GPUs of a cluster cost and whose they were, read from a telemetry server.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/cost/report.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/terminal.h"
#include "codec/yaml.h"

namespace nos::cmd {
namespace {

struct CostFlags {
  TelemetryFlags telemetry;
  TimeFlags time{.since = "24h"};
  std::string month, by = "namespace", sort = "cost", ns;
  std::string output = "table";
  int64_t limit = 100;
};

constexpr const char* kNoPrices =
    "the server has no prices of GPUs: set telemetry.cost.currency and telemetry.cost.prices in "
    "the "
    "values of the chart, or cost in the server's configuration; for example --set "
    "telemetry.cost.currency=EUR --set 'telemetry.cost.prices[0].pricePerGpuHour=2.50' "
    "(docs/cost.md)";

// The answer of GET cost-forecast.
Result<Json> ForecastOf(TelemetryClient& client, const CostFlags& flags) {
  const auto get = [&](const std::string& month) {
    Query query;
    if (!month.empty()) query.emplace_back("month", month);
    if (!flags.ns.empty()) query.emplace_back("namespace", flags.ns);
    return client.Get("cost-forecast", std::move(query));
  };
  NOS_ASSIGN(const Json answer,
             get(flags.month == "this" || flags.month == "last" ? "" : flags.month));
  if (flags.month != "last") return answer;
  NOS_ASSIGN(const std::string before, MonthBefore(FindString(answer, "month")));
  return get(before);
}

Result<TimeRange> RangeOf(const Json& forecast) {
  const Json *from = Find(forecast, "from"), *to = Find(forecast, "to"),
             *now = Find(forecast, "now");
  for (const Json* each : {from, to, now}) {
    if (each == nullptr || !each->is_int64()) {
      return Invalid("the server is not a nos telemetry server of this version");
    }
  }
  return TimeRange{from->get_int64(), std::min(to->get_int64(), now->get_int64())};
}

Query QueryOf(const TimeRange& span, const CostFlags& flags) {
  Query query = {{"from", std::to_string(span.from)},
                 {"to", std::to_string(span.to)},
                 {"by", flags.by},
                 {"limit", std::to_string(flags.limit)}};
  if (flags.sort != "cost") query.emplace_back("sort", flags.sort);
  if (!flags.ns.empty()) query.emplace_back("namespace", flags.ns);
  return query;
}

Status Print(Json answer, const Json& forecast, const CostFlags& flags) {
  const Json* configured = Find(answer, "configured");
  if (configured != nullptr && configured->is_bool() && !configured->get_bool()) {
    return NotFound(kNoPrices);
  }
  if (const Json* total = Find(answer, "total"); total == nullptr || !total->is_object()) {
    return Invalid("the server is not a nos telemetry server of this version");
  }
  if (flags.output == "table" || flags.output == "wide") {
    std::cout << CostTableOf(answer, flags.output == "wide").ToString(TableWidth())
              << ForecastText(forecast) << CostNotes(answer);
    return Status::Ok();
  }
  if (!forecast.is_null()) answer.get_object()["forecast"] = forecast;
  std::cout << (flags.output == "json" ? WriteJsonPretty(answer) + "\n" : WriteYaml(answer));
  return Status::Ok();
}

Status Run(const CostFlags& flags) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags.telemetry));
  Json forecast;
  TimeRange span;
  if (flags.month.empty()) {
    NOS_ASSIGN(const int64_t now, client.Now());
    NOS_ASSIGN(span, RangeOf(flags.time, now));
  } else {
    NOS_ASSIGN(forecast, ForecastOf(client, flags));
    NOS_ASSIGN(span, RangeOf(forecast));
  }
  Query query = QueryOf(span, flags);
  if (flags.output == "csv") {
    query.emplace_back("format", "csv");
    NOS_ASSIGN(const std::string csv, client.GetText("cost", std::move(query)));
    std::cout << csv;
    return Status::Ok();
  }
  NOS_ASSIGN(Json answer, client.Get("cost", std::move(query)));
  return Print(std::move(answer), forecast, flags);
}

}  // namespace

void AddCostCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "cost", "Show what GPUs cost, by namespace, quota, job, pod, model, pool, use or day");
  auto flags = std::make_shared<CostFlags>();
  const auto text = [&](const char* name, std::string& value, const char* help, const char* about) {
    return command->add_option(name, value, help)->option_text(about);
  };
  AddTimeFlags(*command, flags->time);
  text("--month", flags->month,
       "A calendar month in UTC: this, last or 2026-11; with a forecast while it lasts", "MONTH")
      ->excludes("--since")
      ->excludes("--from")
      ->excludes("--to");
  static const std::vector<std::string> kBy = {"namespace", "quota", "job",      "pod", "model",
                                               "category",  "pool",  "workload", "day", "hour"};
  OfferWords(
      *text("--by", flags->by, "Group costs by this field", "WORD [namespace]")
           ->check(CLI::IsMember(kBy)),
      kBy, false,
      "namespace, quota, job, pod, workload (job or pod), model, pool, category, day or hour");
  static const std::vector<std::string> kSort = {"cost",       "used",     "idle",
                                                 "unknown",    "free",     "unpartitioned",
                                                 "fragmented", "stranded", "not_reported"};
  OfferWords(*text("--sort", flags->sort, "Rows with most of this first", "WORD [cost]")
                  ->check(CLI::IsMember(kSort)),
             kSort, false, "cost, or a category: used, idle, unknown, free, stranded, …");
  text("-n,--namespace", flags->ns, "Only pods of this namespace", "NAME");
  command->add_option("--limit", flags->limit, "Maximum number of rows; the others are summed up")
      ->check(CLI::Range(1, 10'000))
      ->option_text("NUMBER [100]");
  text("-o,--output", flags->output, "Output format: table, wide, json, yaml or csv", "FORMAT")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "csv"}));
  AddTelemetryFlags(*command, flags->telemetry);
  command->footer(
      "Prices are in the telemetry server's configuration: telemetry.cost of the chart.\n"
      "json, yaml and csv have all digits: their rows add up to the total exactly.\n\n"
      "Examples:\n"
      "  nos cost                                  the last day, by namespace\n"
      "  nos cost --since 30d --by quota           own and borrowed\n"
      "  nos cost --by pod -n team-a\n"
      "  nos cost --by category -o wide            what is used, idle, free, stranded\n"
      "  nos cost --month this                     so far, and a forecast of its end\n"
      "  nos cost --by workload --sort idle        the most expensive idle jobs and pods\n"
      "  nos cost --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z -o csv > january.csv");
  RunWhenChosen(*command, chosen, "nos cost", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
