// The sentence of a story. Internal to this library.
#pragma once

#include <span>
#include <string>

#include "telemetryserver/stories/decision.h"

namespace nos::telemetryserver {

// "team/train (3 pods)", "team/web-1", "team/a, team/b and 2 more pods"; "" for none.
std::string PodsText(std::span<const StoryPod> pods);
// Sets subject, sentence and reason. `group`: the decisions of the story, earliest first; the other
// members of the story are set.
void Phrase(std::span<const Decision> group, Story& story);

}  // namespace nos::telemetryserver
