#include "telemetryserver/stories.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "telemetryserver/stories/decision.h"
#include "telemetryserver/stories/sentence.h"

namespace nos::telemetryserver {
namespace {

// Decisions with an equal key are one story. It depends on this decision only.
using Key = std::tuple<telemetry::Millis, std::string, std::string, std::string>;

std::string_view StateOf(const Decision& decision) {
  const bool ends = decision.state == "failed" || decision.state == "superseded";
  return ends ? std::string_view(decision.state) : std::string_view();
}

// Decisions are about a job: its namespace, and the names of its pods up to the last dash.
std::string AboutOf(const Decision& decision) {
  if (!decision.victims.empty()) return decision.victims.front().ns;
  if (decision.type != "plan" && !decision.hidden_victims) return decision.summary;
  if (decision.pods.empty()) return "";
  const StoryPod& first = decision.pods.front();
  const size_t dash = first.name.rfind('-');
  return fmt::format("{}/{}", first.ns, first.name.substr(0, dash == 0 ? first.name.npos : dash));
}

Key KeyOf(const Decision& decision) {
  const telemetry::Millis made = std::max<telemetry::Millis>(0, decision.made);
  return {made / kStoryPeriod, decision.type, std::string(StateOf(decision)), AboutOf(decision)};
}

template <typename T>
void AddNew(const std::vector<T>& from, std::set<T>& known, std::vector<T>& to) {
  for (const T& each : from) {
    if (known.insert(each).second) to.push_back(each);
  }
}

void Add(const SliceCounts& from, SliceCounts& to) {
  for (const auto& [profile, count] : from) to[profile] += count;
}

std::string OutcomeOf(std::span<const Decision> group) {
  const auto planned = [](const Decision& each) { return each.state == "planned"; };
  return std::ranges::any_of(group, planned) ? "planned" : group.back().state;
}

// `group`: not empty, earliest first.
Story StoryOfGroup(std::span<const Decision> group) {
  Story story;
  story.id = group.front().id;
  story.type = group.front().type;
  story.outcome = OutcomeOf(group);
  story.from = group.front().made;
  story.at = group.back().made;
  std::set<StoryPod> pods, victims;
  std::set<std::string> nodes;
  for (const Decision& each : group) {
    story.took_ms = std::max(story.took_ms, each.took_ms);
    AddNew(each.pods, pods, story.pods);
    AddNew(each.victims, victims, story.victims);
    AddNew(each.nodes, nodes, story.nodes);
    Add(each.created, story.created);
    Add(each.destroyed, story.destroyed);
    story.decisions.push_back(each.id);
  }
  Phrase(group, story);
  return story;
}

// Each decision as it was reported last, in the order of ids.
std::vector<Decision> LatestOf(std::span<const Json> records) {
  std::map<std::string, Decision> latest;
  for (const Json& record : records) {
    Decision decision = ReadDecision(record);
    const auto [known, fresh] = latest.try_emplace(decision.id, decision);
    if (fresh || decision.at < known->second.at) continue;
    known->second = std::move(decision);
  }
  std::vector<Decision> decisions;
  decisions.reserve(latest.size());
  for (auto& [id, decision] : latest) decisions.push_back(std::move(decision));
  return decisions;
}

template <typename T, typename F>
void PutList(const std::vector<T>& all, size_t most, const char* key, F json, JsonObject& object) {
  JsonArray list;
  for (size_t i = 0; i < std::min(all.size(), most); ++i) list.push_back(json(all[i]));
  object[key] = std::move(list);
  if (all.size() <= most) return;
  object[std::string("more_") + key] = static_cast<int64_t>(all.size() - most);
}

JsonObject SlicesJson(const SliceCounts& slices) {
  JsonObject object;
  for (const auto& [profile, count] : slices) object[profile] = count;
  return object;
}

}  // namespace

std::vector<Story> StoriesOf(std::span<const Json> records) {
  std::vector<Decision> decisions = LatestOf(records);
  Settle(decisions);
  std::ranges::stable_sort(decisions, {}, &Decision::made);
  std::map<Key, std::vector<Decision>> groups;
  for (Decision& each : decisions) groups[KeyOf(each)].push_back(std::move(each));
  std::vector<Story> stories;
  stories.reserve(groups.size());
  for (const auto& [key, group] : groups) stories.push_back(StoryOfGroup(group));
  std::ranges::sort(stories, [](const Story& a, const Story& b) {
    return std::tie(a.at, a.id) > std::tie(b.at, b.id);
  });
  return stories;
}

Story StoryOf(const Json& record) {
  const Decision decision = ReadDecision(record);
  return StoryOfGroup(std::span(&decision, 1));
}

JsonObject StoryJson(const Story& story) {
  JsonObject object{{"id", story.id},
                    {"type", story.type},
                    {"outcome", story.outcome},
                    {"from", story.from},
                    {"at", story.at},
                    {"took_ms", story.took_ms < 0 ? Json() : Json(story.took_ms)},
                    {"created", SlicesJson(story.created)},
                    {"destroyed", SlicesJson(story.destroyed)},
                    {"subject", story.subject},
                    {"sentence", story.sentence},
                    {"reason", story.reason}};
  const auto pod = [](const StoryPod& each) {
    return Json{{"namespace", each.ns}, {"name", each.name}};
  };
  const auto text = [](const std::string& each) { return Json(each); };
  PutList(story.pods, kMaxStoryPods, "pods", pod, object);
  PutList(story.victims, kMaxStoryPods, "victims", pod, object);
  PutList(story.nodes, kMaxStoryNodes, "nodes", text, object);
  PutList(story.decisions, kMaxStoryDecisions, "decisions", text, object);
  return object;
}

std::vector<Json> WithStories(std::vector<Json> records) {
  std::vector<Decision> decisions;
  decisions.reserve(records.size());
  for (const Json& record : records) decisions.push_back(ReadDecision(record));
  Settle(decisions);
  for (size_t i = 0; i < records.size(); ++i) {
    if (!records[i].is_object()) continue;
    const Story story = StoryOfGroup(std::span(&decisions[i], 1));
    JsonObject& object = records[i].get_object();
    object["state"] = story.outcome;
    object["story"] = {{"subject", story.subject},
                       {"sentence", story.sentence},
                       {"reason", story.reason},
                       {"created", SlicesText(story.created)},
                       {"destroyed", SlicesText(story.destroyed)}};
  }
  return records;
}

}  // namespace nos::telemetryserver
