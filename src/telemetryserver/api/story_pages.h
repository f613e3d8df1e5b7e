// Stories of the past (stories.h), one page at a time, from the decisions of the store. Internal to
// this library.
//
//   NOS_ASSIGN(StoryPage page, ReadStories(archive, cluster, {.most = 50}, narrow));
//   NOS_ASSIGN(page, ReadStories(archive, cluster, {.before = *page.next, .most = 50}, narrow));
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "telemetryserver/store/archive.h"
#include "telemetryserver/stories.h"

namespace nos::telemetryserver {

// A position between stories, by `at` and id: it selects older ones.
struct StoryPlace {
  telemetry::Millis at = 0;
  std::string id;
};
// "1763760000000.plan/n-1/5e0c4d7a/7", or a time alone. Error: kInvalid.
Result<StoryPlace> ParseStoryPlace(std::string_view text);
std::string ToText(const StoryPlace& place);

struct StoryQuery {
  telemetry::Millis since = 0;  // only stories with a later or equal `at`
  StoryPlace before{9'999'999'999'999, ""};
  size_t most = 50;
};

struct StoryPage {
  std::vector<Story> stories;  // newest first, at most StoryQuery::most
  // Where to continue; nullopt: the end. A page may be short or empty and have one, because a page
  // reads at most kMaxScanned records.
  std::optional<StoryPlace> next;
};

// `narrow`: removes what the reader may not see from a decision; false: nothing is left. Reports of
// a decision that come more than an hour after it are read on the first page only.
Result<StoryPage> ReadStories(Archive& archive, int64_t cluster, const StoryQuery& query,
                              FunctionRef<bool(Json&)> narrow);

}  // namespace nos::telemetryserver
