// Stories of a telemetry server (telemetryserver/stories.h), for terminal commands. The server
// composes their sentences; commands print them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/table.h"
#include "cmd/query/telemetry_client.h"

namespace nos::cmd {

struct StoryRow {
  int64_t at = 0;        // milliseconds since the epoch
  int64_t took_ms = -1;  // -1: unknown
  std::string type, outcome, sentence, reason;
  std::vector<std::string> decisions;  // ids
};

// The stories of an answer to GET stories. Members of other types are left empty.
std::vector<StoryRow> StoryRows(const Json& answer);
TextTable StoriesTable(const std::vector<StoryRow>& rows);

struct StoriesRead {
  std::vector<Json> answers;  // pages of GET stories, newest first
  bool more = false;          // older stories exist
};
// At most `limit` stories in [from, to), the newest ones. `ns`: of this namespace; "": all. Errors:
// see TelemetryClient::Get.
Result<StoriesRead> ReadStories(TelemetryClient& client, const TimeRange& range,
                                const std::string& ns, int64_t limit);

}  // namespace nos::cmd
