// nos cost: what the GPUs of a cluster cost and whose they were, read from a telemetry server.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/cost/report.h"
#include "cmd/query/history_report.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/terminal.h"
#include "codec/yaml.h"

namespace nos::cmd {
namespace {

struct CostFlags {
  TelemetryFlags telemetry;
  std::string since = "24h", from, to = "now", by = "namespace", ns, output = "table";
  int64_t limit = 100;
};

constexpr const char* kNoPrices =
    "the server has no prices of GPUs: set telemetry.cost.currency and telemetry.cost.prices in "
    "the "
    "values of the chart, or cost in the server's configuration; for example --set "
    "telemetry.cost.currency=EUR --set 'telemetry.cost.prices[0].pricePerGpuHour=2.50' "
    "(docs/cost.md)";

Result<Query> QueryOf(TelemetryClient& client, const CostFlags& flags) {
  NOS_ASSIGN(const Json session, client.Get("session"));
  const Json* now = Find(session, "now");
  if (now == nullptr || !now->is_int64())
    return Invalid("the server is not a nos telemetry server");
  const int64_t at = now->get_int64();
  NOS_ASSIGN(const int64_t from, ParseMoment(flags.from.empty() ? flags.since : flags.from, at));
  NOS_ASSIGN(const int64_t to, ParseMoment(flags.to, at));
  if (from >= to) return Invalid("--from is after --to");
  Query query = {{"from", std::to_string(from)},
                 {"to", std::to_string(to)},
                 {"by", flags.by},
                 {"limit", std::to_string(flags.limit)}};
  if (!flags.ns.empty()) query.emplace_back("namespace", flags.ns);
  return query;
}

// Times are relative to the server's clock, because records carry it.
Status Run(const CostFlags& flags) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags.telemetry));
  NOS_ASSIGN(Query query, QueryOf(client, flags));
  if (flags.output == "csv") {
    query.emplace_back("format", "csv");
    NOS_ASSIGN(const std::string csv, client.GetText("cost", std::move(query)));
    std::cout << csv;
    return Status::Ok();
  }
  NOS_ASSIGN(const Json answer, client.Get("cost", std::move(query)));
  const Json* configured = Find(answer, "configured");
  if (configured != nullptr && configured->is_bool() && !configured->get_bool()) {
    return NotFound(kNoPrices);
  }
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(answer) << "\n";
  } else if (flags.output == "yaml") {
    std::cout << WriteYaml(answer);
  } else if (const Json* total = Find(answer, "total"); total == nullptr || !total->is_object()) {
    return Invalid("the server is not a nos telemetry server of this version");
  } else {
    std::cout << CostTableOf(answer, flags.output == "wide").ToString(TableWidth())
              << CostNotes(answer);
  }
  return Status::Ok();
}

}  // namespace

void AddCostCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "cost", "Show what GPUs cost, by namespace, quota, job, pod, model or use");
  auto flags = std::make_shared<CostFlags>();
  const auto text = [&](const char* name, std::string& value, const char* help, const char* about) {
    return command->add_option(name, value, help)->option_text(about);
  };
  text("--since", flags->since, "Start of the time range, as time before now", "DURATION [24h]");
  text("--from", flags->from,
       "Start of the time range: 2026-01-02T03:04:05Z, or a duration before now", "TIME")
      ->excludes("--since");
  text("--to", flags->to, "End of the time range", "TIME [now]");
  OfferWords(*text("--by", flags->by, "What a row is about", "WORD [namespace]")
                  ->check(CLI::IsMember({"namespace", "quota", "job", "pod", "model", "category"})),
             {"namespace", "quota", "job", "pod", "model", "category"}, false,
             "namespace, quota, job, pod, model or category");
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
      "  nos cost --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z -o csv > january.csv");
  RunWhenChosen(*command, chosen, "nos cost", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
