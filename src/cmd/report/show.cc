// nos report: what the GPUs of a cluster did in a time, and what repartitioning and quotas brought,
// read from a telemetry server.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/history_report.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/report/summary.h"
#include "cmd/terminal.h"

namespace nos::cmd {
namespace {

struct ReportFlags {
  TelemetryFlags telemetry;
  std::string since = "7d", from, to = "now", output = "text";
};

// Times are relative to the server's clock, because records carry it.
Status Run(const ReportFlags& flags) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags.telemetry));
  NOS_ASSIGN(const Json session, client.Get("session"));
  const Json* now = Find(session, "now");
  if (now == nullptr || !now->is_int64())
    return Invalid("the server is not a nos telemetry server");
  NOS_ASSIGN(const int64_t from,
             ParseMoment(flags.from.empty() ? flags.since : flags.from, now->get_int64()));
  NOS_ASSIGN(const int64_t to, ParseMoment(flags.to, now->get_int64()));
  if (from >= to) return Invalid("--from is after --to");
  const Query span = {{"from", std::to_string(from)}, {"to", std::to_string(to)}};
  ReportAnswers answers;
  NOS_ASSIGN(answers.savings, client.Get("savings", span));
  Query cost = span;
  cost.emplace_back("by", "namespace");
  auto costs = client.Get("cost", std::move(cost));
  if (costs.ok()) {
    answers.cost = *std::move(costs);
  } else if (costs.status().code() != Code::kNotFound) {
    return costs.status();
  }
  NOS_RETURN_IF_ERROR(CheckAnswers(answers));
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(ReportJson(answers)) << "\n";
  } else if (flags.output == "html") {
    std::cout << ReportHtml(answers);
  } else {
    std::cout << ReportText(answers, TableWidth());
  }
  return Status::Ok();
}

}  // namespace

void AddReportCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.add_subcommand(
      "report", "Report a week: served, waited, wasted, and what repartitioning saved");
  auto flags = std::make_shared<ReportFlags>();
  const auto text = [&](const char* name, std::string& value, const char* help, const char* about) {
    return command->add_option(name, value, help)->option_text(about);
  };
  text("--since", flags->since, "Start of the time range, as time before now", "DURATION [7d]");
  text("--from", flags->from,
       "Start of the time range: 2026-01-02T03:04:05Z, or a duration before now", "TIME")
      ->excludes("--since");
  text("--to", flags->to, "End of the time range", "TIME [now]");
  text("-o,--output", flags->output, "Output format: text, html or json", "FORMAT")
      ->check(CLI::IsMember({"text", "html", "json"}));
  AddTelemetryFlags(*command, flags->telemetry);
  command->footer(
      "\"Without\" replays the same pods on GPUs that are never repartitioned (docs/report.md).\n\n"
      "Examples:\n"
      "  nos report\n"
      "  nos report --since 30d -o html > report.html\n"
      "  nos report --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z -o json");
  RunWhenChosen(*command, chosen, "nos report", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
