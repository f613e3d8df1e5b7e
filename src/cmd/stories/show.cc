// nos get stories: what nos decided, as sentences, read from a telemetry server.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "cmd/command.h"
#include "cmd/commands.h"
#include "cmd/query/telemetry_client.h"
#include "cmd/stories/reading.h"
#include "cmd/terminal.h"

namespace nos::cmd {
namespace {

struct StoriesFlags {
  TelemetryFlags telemetry;
  TimeFlags time{.since = "1h"};
  std::string ns, output = "table";
  int64_t limit = 100;
};

Status Run(const StoriesFlags& flags) {
  NOS_ASSIGN(TelemetryClient client, TelemetryClient::For(flags.telemetry));
  NOS_ASSIGN(const int64_t now, client.Now());
  NOS_ASSIGN(TimeRange range, RangeOf(flags.time, now));
  ++range.to;  // exclusive
  NOS_ASSIGN(const StoriesRead read, ReadStories(client, range, flags.ns, flags.limit));
  if (flags.output == "json") {
    JsonArray stories;
    for (const Json& answer : read.answers) {
      const Json* found = Find(answer, "stories");
      if (found == nullptr || !found->is_array()) continue;
      for (const Json& story : found->get_array()) stories.push_back(story);
    }
    std::cout << WriteJsonPretty(stories) << "\n";
    return Status::Ok();
  }
  std::vector<StoryRow> rows;
  for (const Json& answer : read.answers) {
    std::vector<StoryRow> page = StoryRows(answer);
    std::move(page.begin(), page.end(), std::back_inserter(rows));
  }
  if (rows.empty()) {
    std::cerr << "no decision in that time\n";
    return Status::Ok();
  }
  std::cout << StoriesTable(rows).ToString(TableWidth());
  if (read.more) {
    std::cerr << "showing only the last " << rows.size()
              << " stories; use a shorter time, -n or a larger --limit for others\n";
  }
  return Status::Ok();
}

}  // namespace

void AddStoriesCommand(CLI::App& root, Chosen& chosen) {
  CLI::App* command = root.get_subcommand("get")->add_subcommand(
      "stories", "List what nos decided, for whom and why, from a telemetry server");
  auto flags = std::make_shared<StoriesFlags>();
  AddTimeFlags(*command, flags->time);
  command->add_option("-n,--namespace", flags->ns, "Show only stories about pods of this namespace")
      ->option_text("NAME");
  command->add_option("--limit", flags->limit, "Maximum number of stories; the last ones are shown")
      ->check(CLI::Range(1, 10'000))
      ->option_text("NUMBER [100]");
  command->add_option("-o,--output", flags->output, "Output format: table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->option_text("FORMAT");
  AddTelemetryFlags(*command, flags->telemetry);
  command->footer(
      "Newest first. Plans of one batch are one story.\n\n"
      "Examples:\n"
      "  nos get stories --since 24h -n team-a\n"
      "  nos get stories --from 2026-01-02T03:00:00Z --to 2026-01-02T04:00:00Z -o json");
  RunWhenChosen(*command, chosen, "nos get stories", [flags] { return Run(*flags); });
}

}  // namespace nos::cmd
