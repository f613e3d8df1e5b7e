// nos get history: past events of a cluster's GPUs, and their layouts at any time, read from a
// telemetry server.
#include "cmd/query/history.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cmd/command.h"
#include "cmd/query/history_report.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/terminal.h"

namespace nos::cmd {
namespace {

constexpr int kMaxPages = 100;

struct HistoryFlags {
  TelemetryFlags telemetry;
  TimeFlags time{.since = "1h"};
  std::string at, ns, node, output = "table";
  int64_t limit = 500;
};

Query Common(const HistoryFlags& flags) {
  Query query;
  if (!flags.ns.empty()) query.emplace_back("namespace", flags.ns);
  return query;
}

struct History {
  std::vector<Json> events;  // oldest first
  bool more = false;         // older events exist
};

Result<History> Read(TelemetryClient& client, const HistoryFlags& flags, int64_t from, int64_t to) {
  History history;
  std::string after;
  for (int page = 0; page < kMaxPages; ++page) {
    const auto left = flags.limit - static_cast<int64_t>(history.events.size());
    if (left <= 0) break;
    Query query = Common(flags);
    query.insert(query.end(), {{"from", std::to_string(from)},
                               {"to", std::to_string(to)},
                               {"limit", std::to_string(left)},
                               {"after", after},
                               {"node", flags.node}});
    for (const char* kind : {"decision", "event", "gap", "layout", "xid"})
      query.emplace_back("kind", kind);
    NOS_ASSIGN(Json answer, client.Get("history", query));
    after = FindString(answer, "next");
    Json* events = answer.get_object().if_contains("events");
    if (events == nullptr || !events->is_array()) break;
    for (Json& event : events->get_array()) history.events.push_back(std::move(event));
    if (after.empty()) break;
  }
  history.more = !after.empty();
  std::ranges::reverse(history.events);
  return history;
}

Status ShowHistory(TelemetryClient& client, const HistoryFlags& flags, int64_t now) {
  NOS_ASSIGN(const TimeRange range, RangeOf(flags.time, now));
  NOS_ASSIGN(const History history, Read(client, flags, range.from, range.to + 1));
  if (history.more) {
    std::cerr << "showing only the last " << history.events.size()
              << " events; use a shorter time, --node, -n or a larger --limit for others\n";
  }
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(JsonArray(history.events.begin(), history.events.end())) << "\n";
    return Status::Ok();
  }
  if (history.events.empty()) {
    std::cerr << "no events in that time\n";
    return Status::Ok();
  }
  // Layout changes are computed against the layouts just before the first event.
  Query query = Common(flags);
  const Json* first = Find(history.events.front(), "at");
  const int64_t begin = first != nullptr && first->is_int64() ? first->get_int64() : range.from;
  query.emplace_back("at", std::to_string(std::max<int64_t>(0, begin - 1)));
  NOS_ASSIGN(const Json before, client.Get("gpus", query));
  std::cout << HistoryTable(HistoryRows(history.events, before)).ToString(TableWidth());
  return Status::Ok();
}

Status ShowLayout(TelemetryClient& client, const HistoryFlags& flags, int64_t now) {
  NOS_ASSIGN(const int64_t at, ParseMoment(flags.at, now));
  Query query = Common(flags);
  query.emplace_back("at", std::to_string(at));
  NOS_ASSIGN(const Json gpus, client.Get("gpus", query));
  if (flags.output == "json") {
    std::cout << WriteJsonPretty(gpus) << "\n";
    return Status::Ok();
  }
  const TextTable table = LayoutTable(gpus, flags.node);
  if (table.empty()) {
    std::cerr << "no GPU layouts are recorded for that time\n";
  } else {
    std::cout << table.ToString(TableWidth());
  }
  return Status::Ok();
}

Status Run(const HistoryFlags& flags) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags.telemetry));
  NOS_ASSIGN(const int64_t now, client.Now());
  return flags.at.empty() ? ShowHistory(client, flags, now) : ShowLayout(client, flags, now);
}

}  // namespace

void AddHistoryCommand(CLI::App& get, Chosen& chosen) {
  CLI::App* command = get.add_subcommand(
      "history", "List decisions, layouts, evictions, Events and XIDs from a telemetry server");
  auto flags = std::make_shared<HistoryFlags>();
  const auto text = [&](const char* name, std::string& value, const char* help, const char* about) {
    return command->add_option(name, value, help)->option_text(about);
  };
  AddTimeFlags(*command, flags->time);
  text("--at", flags->at, "Show the layouts at this time", "TIME");
  text("-n,--namespace", flags->ns, "Show only events about this namespace", "NAME");
  text("--node", flags->node, "Show only events about this node", "NAME");
  command->add_option("--limit", flags->limit, "Maximum number of events; the last ones are shown")
      ->check(CLI::Range(1, 10'000))
      ->option_text("NUMBER [500]");
  text("-o,--output", flags->output, "Output format: table or json", "FORMAT")
      ->check(CLI::IsMember({"table", "json"}));
  AddTelemetryFlags(*command, flags->telemetry);
  command->footer(
      "Examples:\n"
      "  nos get history --since 30m --node gpu-1\n"
      "  nos get history --from 2026-01-02T03:00:00Z --to 2026-01-02T04:00:00Z -o json\n"
      "  nos get history --at 90m");
  RunWhenChosen(*command, chosen, "nos get history", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
