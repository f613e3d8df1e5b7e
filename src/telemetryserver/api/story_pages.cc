#include "telemetryserver/api/story_pages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace nos::telemetryserver {
namespace {

// Decisions proceed within this time, and later ones end them: what was reported in it after a page
// belongs to the page. At most kMaxLater reports are read.
constexpr telemetry::Millis kLater = kHour;
constexpr size_t kMaxLater = 2000;

int64_t PeriodOf(telemetry::Millis at) { return at / kStoryPeriod; }

bool IsBefore(const Story& story, const StoryPlace& place) {
  return std::tie(story.at, story.id) < std::tie(place.at, place.id);
}

// The decisions of a page. They are read by the time of their reports, the newest first; a decision
// is made no later than it is reported. So all decisions of a period are known when a report before
// the period is read.
class Reading {
 public:
  // `until`: the end of the last period.
  Reading(const StoryQuery& query, telemetry::Millis until)
      : query_(query), until_(until), complete_from_(PeriodOf(until)) {}

  // A report that was made after all that may belong to the page.
  void AddLater(Json body) { later_.push_back(std::move(body)); }
  // Takes the report; false if the periods after it have enough stories.
  bool Add(telemetry::Millis at, Json&& body) {
    CompleteFrom(PeriodOf(at) + 1);
    if (stories_ > query_.most) return false;  // one more is the sign of a next page
    const telemetry::Millis made = telemetry::IntegerOr(body, "made", at);
    if (made < 0 || made >= until_) return true;
    // Newest first: an earlier report of the decision has nothing new.
    std::string id(FindString(body, "id"));
    periods_[PeriodOf(made)].try_emplace(std::move(id), std::move(body));
    return true;
  }
  // All decisions of the periods from `from` on are known.
  void CompleteFrom(int64_t from) {
    for (auto it = periods_.lower_bound(from); it != periods_.end() && it->first < complete_from_;
         ++it) {
      std::vector<Json> decisions;
      for (const auto& [id, body] : it->second) decisions.push_back(body);
      for (const Story& story : StoriesOf(decisions)) {
        if (IsBefore(story, query_.before) && story.at >= query_.since) ++stories_;
      }
    }
    complete_from_ = std::min(complete_from_, from);
  }
  int64_t complete_from() const { return complete_from_; }
  // Keeps stories of complete periods, and later ones.
  std::vector<Json> Take() && {
    std::vector<Json> decisions = std::move(later_);
    for (auto& [period, known] : periods_) {
      if (period < complete_from_) continue;
      for (auto& [id, body] : known) decisions.push_back(std::move(body));
    }
    return decisions;
  }

 private:
  const StoryQuery& query_;
  const telemetry::Millis until_;
  std::vector<Json> later_;
  std::map<int64_t, std::map<std::string, Json>> periods_;  // decisions by id
  int64_t complete_from_;
  size_t stories_ = 0;  // of complete periods, for this page
};

}  // namespace

Result<StoryPlace> ParseStoryPlace(std::string_view text) {
  const size_t dot = text.find('.');
  const auto at = ParseInt(text.substr(0, dot));
  if (at && *at >= 0 && *at <= StoryQuery().before.at) {
    return StoryPlace{*at, std::string(dot == text.npos ? "" : text.substr(dot + 1))};
  }
  return Invalid(fmt::format(
      "invalid cursor {}: pass the value of `next`, or a time in milliseconds since the epoch",
      Shortened(text, 60)));
}

std::string ToText(const StoryPlace& place) {
  return place.id.empty() ? std::to_string(place.at) : fmt::format("{}.{}", place.at, place.id);
}

Result<StoryPage> ReadStories(Archive& archive, int64_t cluster, const StoryQuery& query,
                              FunctionRef<bool(Json&)> narrow) {
  // Whole periods, so that a story does not depend on the page.
  const StoryPlace& place = query.before;
  const telemetry::Millis newest = std::max<telemetry::Millis>(0, place.at - place.id.empty()),
                          begin = FloorTo(query.since, kStoryPeriod),
                          last = FloorTo(newest, kStoryPeriod), end = last + kStoryPeriod;
  Reading reading(query, end);
  EventQuery events{end, end + kLater, {"decision"}, "", kMaxLater};
  NOS_ASSIGN(std::vector<Event> later, archive.Events(cluster, events));
  for (Event& event : later) {
    if (narrow(event.body)) reading.AddLater(std::move(event.body));
  }
  events = {begin, end, {"decision"}, "", 1};  // the first accepted event ends the page
  bool enough = false;
  NOS_ASSIGN(const std::optional<EventPlace> rest, archive.Scan(cluster, events, [&](Event& event) {
    if (!narrow(event.body)) return false;
    enough = !reading.Add(event.at, std::move(event.body));
    return enough;
  }));
  StoryPage page;
  if (!rest) {
    reading.CompleteFrom(0);
  } else {
    if (!enough) reading.CompleteFrom(PeriodOf(rest->at) + 1);
    page.next = StoryPlace{reading.complete_from() * kStoryPeriod, ""};
    // A minute has more reports than a page may read: the page ends within it.
    if (page.next->at >= end) {
      reading.CompleteFrom(PeriodOf(rest->at));
      page.next->at = rest->at < place.at ? rest->at : last;
    }
  }
  for (Story& story : StoriesOf(std::move(reading).Take())) {
    if (!IsBefore(story, place) || story.at < query.since) continue;
    if (page.stories.size() == query.most) {
      page.next = StoryPlace{page.stories.back().at, page.stories.back().id};
      break;
    }
    page.stories.push_back(std::move(story));
  }
  return page;
}

}  // namespace nos::telemetryserver
