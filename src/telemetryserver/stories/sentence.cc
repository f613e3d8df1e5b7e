#include "telemetryserver/stories/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"

namespace nos::telemetryserver {
namespace {

constexpr size_t kJobsShown = 2, kNodesShown = 2, kProfilesShown = 3, kSwitchesShown = 2;

std::string Counted(int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string Capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] -= 'a' - 'A';
  return text;
}

// "a", "a and b", "a, b and 3 more nodes". `rest`: "more node".
std::string Listed(const std::vector<std::string>& all, size_t most, std::string_view rest) {
  const size_t shown = std::min(all.size(), most);
  std::vector<std::string> texts(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown));
  if (all.size() > shown) texts.push_back(Counted(static_cast<int64_t>(all.size() - shown), rest));
  if (texts.size() < 2) return Join(texts, "");
  const std::string last = std::move(texts.back());
  texts.pop_back();
  return fmt::format("{} and {}", Join(texts, ", "), last);
}

std::string KeyOf(const StoryPod& pod) { return pod.ns + "/" + pod.name; }

// "train-7" of "train-7-x2b4q": the name without its last part, if one is left.
std::string_view StemOf(std::string_view name) {
  const size_t dash = name.rfind('-');
  return dash == std::string_view::npos || dash == 0 ? name : name.substr(0, dash);
}

// Adds what the reader may not see.
std::string WithHidden(std::string pods, bool hidden) {
  if (!hidden) return pods;
  return pods.empty() ? "pods of other namespaces" : pods + " and pods of other namespaces";
}

std::string Prefixed(std::string_view prefix, std::string text) {
  return text.empty() ? text : std::string(prefix) + std::move(text);
}

// A reason that the reader may not see is no sentence of its own.
std::string WhyText(const std::string& why) {
  if (why.empty()) return "";
  return why == kHiddenText ? fmt::format(" (the reason {})", why) : ": " + why;
}

std::string DurationText(int64_t ms) {
  constexpr int64_t kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute;
  if (ms < 0) return "";
  if (ms < kSecond) return " in less than a second";
  if (ms < 2 * kMinute) return fmt::format(" in {} s", (ms + kSecond / 2) / kSecond);
  if (ms < 2 * kHour) return fmt::format(" in {} min", (ms + kMinute / 2) / kMinute);
  return fmt::format(" in {} h", (ms + kHour / 2) / kHour);
}

// A name begins as it is.
std::string SubjectOf(const std::string& text, const std::vector<StoryPod>& named) {
  return named.empty() ? Capitalized(text) : text;
}

struct Parts {
  std::string pods, victims;  // with those that the reader may not see
  std::string where;          // " on n-1 and n-2"
  std::string created, destroyed, switches;
};

Parts PartsOf(std::span<const Decision> group, const Story& story) {
  const auto hides = [&](bool Decision::* hidden) { return std::ranges::any_of(group, hidden); };
  Parts parts;
  parts.pods = WithHidden(PodsText(story.pods), hides(&Decision::hidden_pods));
  parts.victims = WithHidden(PodsText(story.victims), hides(&Decision::hidden_victims));
  parts.where = Listed(story.nodes, kNodesShown, "more node");
  parts.created = SlicesText(story.created);
  parts.destroyed = SlicesText(story.destroyed);
  std::vector<std::string> switches;
  for (const Decision& each : group)
    switches.insert(switches.end(), each.switches.begin(), each.switches.end());
  parts.switches = Prefixed("; ", Listed(switches, kSwitchesShown, "more GPU"));
  return parts;
}

void PhrasePlan(std::span<const Decision> group, const Parts& parts, Story& story) {
  const std::string where = Prefixed(" on ", parts.where);
  const std::string for_whom = Prefixed(" for ", parts.pods);
  const std::string what = parts.created.empty() ? "a layout" : parts.created;
  const std::string instead = Prefixed(", in place of free ", parts.destroyed);
  const std::string within = DurationText(story.took_ms);
  if (story.outcome == "failed") {
    story.sentence =
        fmt::format("Failed to create {}{}{}{}", what, where, for_whom, WhyText(group.back().why));
  } else if (story.outcome == "superseded") {
    story.sentence =
        fmt::format("Planned {}{}{}, but a later plan replaced it", what, where, for_whom);
  } else if (story.outcome == "planned") {
    story.sentence =
        fmt::format("Creating {}{}{}{}{}", what, where, for_whom, instead, parts.switches);
  } else if (!parts.pods.empty()) {
    story.subject = SubjectOf(parts.pods, story.pods);
    story.sentence = fmt::format("{} got {}{}{}{}{}", story.subject,
                                 parts.created.empty() ? "slices" : parts.created, where, within,
                                 instead, parts.switches);
  } else if (!parts.created.empty()) {
    story.sentence =
        fmt::format("Created {}{}{}{}{}", what, where, within, instead, parts.switches);
  } else if (!parts.destroyed.empty()) {
    story.sentence =
        fmt::format("Removed free {}{}{}{}", parts.destroyed, where, within, parts.switches);
  } else {
    story.sentence = fmt::format("Repartitioned {}{}{}", parts.where.empty() ? "GPUs" : parts.where,
                                 within, parts.switches);
  }
}

// For whom, and why these pods: ", which has a higher priority".
std::string PurposeOf(const Parts& parts, const Story& story, bool hidden) {
  if (story.type == "move") return Prefixed(" for ", parts.pods);
  const bool reclaim = story.type == "reclaim", none = parts.pods.empty();
  if (none) {
    return reclaim ? " for a pod to which an elastic quota guarantees the resources"
                   : " for a pod with a higher priority";
  }
  const bool one = story.pods.size() == 1 && !hidden;
  std::string text = " for " + parts.pods;
  if (reclaim) {
    text += one ? ", within the guarantee of its elastic quota"
                : ", within the guarantee of their elastic quota";
  } else {
    text += one ? ", which has a higher priority" : ", which have a higher priority";
  }
  return text;
}

void PhraseEviction(std::span<const Decision> group, const Parts& parts, Story& story) {
  const bool hidden_victims = std::ranges::any_of(group, &Decision::hidden_victims),
             hidden_pods = std::ranges::any_of(group, &Decision::hidden_pods);
  const bool one = story.victims.size() == 1 && !hidden_victims;
  story.subject = SubjectOf(parts.victims, story.victims);
  const bool moved = story.type == "move";
  story.sentence =
      fmt::format("{} {} {}{}{}{}", story.subject, one ? "was" : "were",
                  moved ? "moved" : "evicted", Prefixed(" from ", parts.where),
                  PurposeOf(parts, story, hidden_pods), moved ? WhyText(group.back().why) : "");
}

// Scaling, and anything that has only the words of its reporter. Its reason often names the object
// again: then the reason alone is the sentence.
void PhraseOther(std::span<const Decision> group, Story& story) {
  const Decision& newest = group.back();
  const std::string_view summary = newest.summary;
  const std::string_view object = summary.substr(summary.rfind(' ') + 1);
  const bool whole = !object.empty() && newest.why.find(object) != std::string::npos;
  const std::string why = WhyText(newest.why);
  if (summary.empty() || summary == kHiddenText) {
    const bool hidden = summary == kHiddenText || newest.why == kHiddenText;
    story.sentence =
        fmt::format("A decision of type {}{}", story.type.empty() ? "unknown" : story.type,
                    hidden ? fmt::format(" {}", kHiddenText) : why);
  } else {
    story.sentence = Capitalized(whole ? newest.why : newest.summary + why);
  }
  if (group.size() > 1) story.sentence += fmt::format(" ({} times)", group.size());
}

// The reporter's reason, or one that follows from the decision's effect.
std::string ReasonOf(std::span<const Decision> group, const Parts& parts, const Story& story) {
  if (!group.back().why.empty()) return group.back().why;
  if (story.type != "plan") return "the reason was not reported";
  const std::string pods = parts.pods.empty() ? "pods" : parts.pods;
  if (parts.created.empty()) return pods + " waited for slices that the GPUs did not offer";
  return fmt::format("{} waited for {}, and no free slice fitted", pods, parts.created);
}

}  // namespace

std::string PodsText(std::span<const StoryPod> pods) {
  if (pods.empty()) return "";
  if (pods.size() == 1) return KeyOf(pods.front());
  std::map<std::string, std::vector<const StoryPod*>> jobs;
  std::vector<std::string> order;
  for (const StoryPod& pod : pods) {
    std::string job = fmt::format("{}/{}", pod.ns, StemOf(pod.name));
    auto& members = jobs[job];
    if (members.empty()) order.push_back(std::move(job));
    members.push_back(&pod);
  }
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](const std::string& job) { return jobs[job].size(); });
  std::vector<std::string> shown;
  size_t left = pods.size();
  for (size_t i = 0; i < std::min(order.size(), kJobsShown); ++i) {
    const auto& members = jobs[order[i]];
    left -= members.size();
    shown.push_back(members.size() == 1 ? KeyOf(*members.front())
                                        : fmt::format("{} ({} pods)", order[i], members.size()));
  }
  if (left > 0) shown.push_back(Counted(static_cast<int64_t>(left), "more pod"));
  return Listed(shown, shown.size(), "");
}

std::string SlicesText(const SliceCounts& slices) {
  std::vector<std::pair<std::string, int64_t>> sorted(slices.begin(), slices.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, int64_t>::second);
  std::vector<std::string> texts;
  for (const auto& [profile, count] : sorted) {
    const std::string name = profile == "gpu"      ? "whole GPU"
                             : profile == "shared" ? "time slice"
                                                   : profile;
    texts.push_back(count == 1 ? name : fmt::format("{} × {}", count, name));
  }
  return Listed(texts, kProfilesShown, "other size");
}

void Phrase(std::span<const Decision> group, Story& story) {
  const Parts parts = PartsOf(group, story);
  const bool evicts = std::ranges::any_of(group, &Decision::Evicts);
  if (evicts && story.type != "plan") {
    PhraseEviction(group, parts, story);
  } else if (story.type == "plan") {
    PhrasePlan(group, parts, story);
  } else {
    PhraseOther(group, story);
  }
  story.reason = ReasonOf(group, parts, story);
}

}  // namespace nos::telemetryserver
