// nos report: what the GPUs of a cluster did in a time, and what repartitioning and quotas brought,
// read from a telemetry server.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/report/summary.h"
#include "cmd/terminal.h"

namespace nos::cmd {
namespace {

struct ReportFlags {
  TelemetryFlags telemetry;
  TimeFlags time{.since = "7d"};
  std::string output = "text";
};

Status Run(const ReportFlags& flags) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags.telemetry));
  NOS_ASSIGN(const int64_t now, client.Now());
  NOS_ASSIGN(const TimeRange range, RangeOf(flags.time, now));
  const Query span = {{"from", std::to_string(range.from)}, {"to", std::to_string(range.to)}};
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
      "report", "Report a week: pods served, waiting, cost, and what repartitioning saved");
  auto flags = std::make_shared<ReportFlags>();
  AddTimeFlags(*command, flags->time);
  command->add_option("-o,--output", flags->output, "Output format: text, html or json")
      ->check(CLI::IsMember({"text", "html", "json"}))
      ->option_text("FORMAT");
  AddTelemetryFlags(*command, flags->telemetry);
  command->footer(
      "The table WITHOUT replays the same pods on GPUs that are never repartitioned\n"
      "(docs/report.md).\n\n"
      "Examples:\n"
      "  nos report\n"
      "  nos report --since 30d -o html > report.html\n"
      "  nos report --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z -o json");
  RunWhenChosen(*command, chosen, "nos report", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
