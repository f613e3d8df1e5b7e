#include "cmd/stories/reading.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace nos::cmd {
namespace {

constexpr int kMaxPages = 100;
constexpr int64_t kMaxOfPage = 1000;

const JsonArray& ArrayAt(const Json& object, std::string_view key) {
  static const JsonArray none;
  const Json* found = Find(object, key);
  return found != nullptr && found->is_array() ? found->get_array() : none;
}

int64_t IntegerAt(const Json& object, std::string_view key, int64_t fallback) {
  const Json* found = Find(object, key);
  return found != nullptr && found->is_int64() ? found->get_int64() : fallback;
}

}  // namespace

std::vector<StoryRow> StoryRows(const Json& answer) {
  std::vector<StoryRow> rows;
  for (const Json& story : ArrayAt(answer, "stories")) {
    StoryRow row;
    row.at = IntegerAt(story, "at", 0);
    row.took_ms = IntegerAt(story, "took_ms", -1);
    row.type = FindString(story, "type");
    row.outcome = FindString(story, "outcome");
    row.sentence = FindString(story, "sentence");
    row.reason = FindString(story, "reason");
    for (const Json& id : ArrayAt(story, "decisions")) {
      if (id.is_string()) row.decisions.emplace_back(View(id.get_string()));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

TextTable StoriesTable(const std::vector<StoryRow>& rows) {
  TextTable table({"TIME", "KIND", "OUTCOME", "STORY"});
  for (const StoryRow& row : rows) {
    table.AddRow(
        {FormatTime(Time(std::chrono::milliseconds(row.at))), row.type, row.outcome, row.sentence});
  }
  return table;
}

Result<StoriesRead> ReadStories(TelemetryClient& client, const TimeRange& range,
                                const std::string& ns, int64_t limit) {
  StoriesRead read;
  std::string before = std::to_string(range.to);
  for (int page = 0; page < kMaxPages && limit > 0 && !before.empty(); ++page) {
    Query query{{"since", std::to_string(range.from)},
                {"before", before},
                {"limit", std::to_string(std::min(limit, kMaxOfPage))}};
    if (!ns.empty()) query.emplace_back("namespace", ns);
    NOS_ASSIGN(Json answer, client.Get("stories", query));
    before = FindString(answer, "next");
    limit -= static_cast<int64_t>(ArrayAt(answer, "stories").size());
    read.answers.push_back(std::move(answer));
  }
  read.more = !before.empty();
  return read;
}

}  // namespace nos::cmd
