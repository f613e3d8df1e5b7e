// Stories: decisions of controllers as sentences that a person would say. Every surface prints
// these: the API and with it the dashboard and `nos get stories`, `nos get history` and the
// sandbox.
//
//   for (const Story& story : StoriesOf(decisions)) Say(story.at, story.sentence);
//   // "research/sweep (3 pods) got 3 × 2g.20gb on n-1 and n-2 in 4 s"
//
// Decisions of one kind about the pods of one job, made in the same minute of the clock, are one
// story: so are the plans of one batch. A story has the id of its earliest decision. It depends on
// nothing but the decisions of its minute, so that ids stay the same after a restart, from page to
// page and when later decisions join. A plan joins the story of the job that its slices serve once
// a pod of it is bound; what failed or was superseded is a story of its own.
//
// Input are decision records (docs/telemetry.md), from untrusted reporters: members of other types
// are ignored, and control characters in names and texts are replaced. For a reader of some
// namespaces the caller narrows the records first (api/narrow.h): a sentence contains only what its
// records contain. Pure functions.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codec/json.h"
#include "telemetry/records.h"

namespace nos::telemetryserver {

// Decisions made in the same period of this length may be one story.
inline constexpr telemetry::Millis kStoryPeriod = 60'000;
// Limits of the lists in the JSON of a story; "more_pods" and so on count what is left out.
inline constexpr size_t kMaxStoryPods = 50, kMaxStoryNodes = 50, kMaxStoryDecisions = 100;

// Stands for a text that names objects of namespaces which the reader may not see.
inline constexpr std::string_view kHiddenText = "includes data of other namespaces";
// Members of a narrowed record: pods or victims of other namespaces are left out.
inline constexpr const char *kHiddenPods = "hidden_pods", *kHiddenVictims = "hidden_victims";

struct StoryPod {
  std::string ns, name;
  friend auto operator<=>(const StoryPod&, const StoryPod&) = default;
};

using SliceCounts = std::map<std::string, int64_t>;  // by profile; "gpu": whole GPUs

struct Story {
  std::string id;              // of its earliest decision
  std::string type;            // "plan", "preemption", "reclaim", "move", "scale"
  std::string outcome;         // "planned", "applied", "failed", "superseded"
  telemetry::Millis from = 0;  // when its earliest decision was made
  telemetry::Millis at = 0;    // when its latest decision was made
  // The longest time that one of its decisions took, in milliseconds; -1: unknown.
  int64_t took_ms = -1;
  // For whom it was made, and whose slices it took; each pod once, in the order of decisions.
  std::vector<StoryPod> pods, victims;
  std::vector<std::string> nodes;  // in the order of decisions
  SliceCounts created, destroyed;  // slices
  std::string subject;             // the beginning of `sentence` that names pods; "": none
  std::string sentence;
  std::string reason;                  // never empty
  std::vector<std::string> decisions;  // ids, earliest first
};

// Newest first. A decision that is repeated counts once, as it was reported last. A later decision
// about a node ends an earlier one that is still planned.
std::vector<Story> StoriesOf(std::span<const Json> decisions);
// The story of one decision.
Story StoryOf(const Json& decision);

// Slices as a text: "5 × 2g.20gb, whole GPU"; "" for none.
std::string SlicesText(const SliceCounts& slices);
// An object as in the answer to GET stories.
JsonObject StoryJson(const Story& story);
// Decisions as in the answer to GET decisions: "state" as later ones left it, and the texts of the
// story of each alone as "story": {"subject","sentence","reason","created","destroyed"}.
std::vector<Json> WithStories(std::vector<Json> decisions);

}  // namespace nos::telemetryserver
